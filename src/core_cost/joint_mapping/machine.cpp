// Builds the NPU model of the joint mapping from the cores of a chip.
#include "core_cost/joint_mapping/problem.hpp"

#include "monet/base/errors.hpp"

#include <algorithm>
#include <limits>

namespace monet {
namespace {

using joint_mapping::Wide;

constexpr std::int64_t kMaxRate = std::int64_t{1} << 20;

/// The largest of the core's outermost memories.
MemoryPlace outermost(const Chip& chip, CoreId id) {
  const Core& core = chip.cores[id.index()];
  const Memory* largest = nullptr;
  for (const MemoryOperand operand : {MemoryOperand::I1, MemoryOperand::I2, MemoryOperand::O}) {
    if (const Memory* top = core.top(operand); top && (!largest || top->size > largest->size))
      largest = top;
  }
  internal_check(largest != nullptr, "a core of a chip has a memory");
  return {id, static_cast<std::size_t>(largest - core.memories.data())};
}

/// Bits per cycle between DRAM and the core, reads and writes in turn: the minimum along the path.
std::int64_t offchip_rate(const Chip& chip, CoreId core) {
  const OffchipPort port = offchip_port(chip);
  std::int64_t rate = std::min(port.read_bits_per_cycle, port.write_bits_per_cycle);
  for (const auto& [from, to] : {std::pair(*chip.offchip, core), std::pair(core, *chip.offchip)}) {
    for (const LinkId link : chip.route(from, to))
      rate = std::min(rate, chip.links[link.index()].bandwidth_bits_per_cycle);
  }
  return rate;
}

} // namespace

bool is_npu_core(const Core& core) {
  return core.kind == CoreKind::array && core.imc == nullptr && core.program == nullptr &&
         !core.array.empty();
}

NpuMachine npu_machine(const Chip& chip, std::int64_t cores) {
  internal_check(cores >= 1 && cores <= kMaxRate, "an NPU has cores");
  std::vector<CoreId> arrays;
  for (std::size_t c = 0; c < chip.compute_cores(); ++c) {
    if (is_npu_core(chip.cores[c]))
      arrays.emplace_back(c);
  }
  if (arrays.empty())
    throw InputError({chip.origin},
                     "no core has an array of multipliers, which products need; arrays that "
                     "compute in memory, processors ('issue') and GPUs ('kernels') do not count");
  if (!chip.offchip)
    throw InputError({chip.origin}, "no off-chip memory, which holds what products read and write");
  const Core& core = chip.cores[arrays.front().index()];
  const MemoryPlace first = outermost(chip, arrays.front());
  const auto sharing = static_cast<std::int64_t>(std::ranges::count_if(arrays, [&](CoreId other) {
    return chip.place_of(outermost(chip, other)) == chip.place_of(first);
  }));

  NpuMachine machine;
  machine.name = chip.name;
  machine.rows = core.array.front().size;
  machine.columns = core.lanes() / machine.rows;
  const Memory& memory = core.memories[first.memory];
  const Wide bits =
      static_cast<Wide>(memory.size.value) * instances(core, memory) * cores / sharing;
  constexpr Wide kMax = std::numeric_limits<std::int64_t>::max();
  machine.buffer_bits = static_cast<std::int64_t>(std::min(bits, kMax));
  const std::int64_t rate = offchip_rate(chip, arrays.front());
  if (rate > kMaxRate / cores)
    throw InputError({chip.origin}, "more than 2^20 bits a cycle cross between DRAM and cores");
  machine.bandwidth_bits = rate * cores;
  machine.bandwidth_cycles = static_cast<std::int64_t>(arrays.size());
  machine.cores = cores;
  machine.frequency_hz = chip.frequency_hz;
  return machine;
}

} // namespace monet

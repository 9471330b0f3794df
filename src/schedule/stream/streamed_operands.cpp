// Which operands the reference streams from and to the off-chip memory.
#include "monet/schedule/stream_costs.hpp"

#include <algorithm>

namespace monet::stream {

namespace {

struct Sized {
  MemoryOperand operand = MemoryOperand::O;
  std::int64_t bits = 0;
};

std::int64_t bits_of(const Workload& workload, std::uint32_t tile, Operand operand) {
  const Layer& layer = workload.layers[workload.tiles[tile].layer];
  const OperandUse& use = layer.operands[static_cast<std::size_t>(operand)];
  const std::span<const Interval> ranges = workload.ranges(tile);
  std::int64_t bits = use.partial_bits;
  for (const std::uint32_t axis : use.axes)
    bits *= ranges[axis].end - ranges[axis].begin;
  return bits;
}

/// All instances of the operand's innermost memory.
std::int64_t innermost_bits(const Core& core, MemoryOperand operand) {
  const Memory& memory = core.memories[core.levels(operand).front()];
  return memory.size.value * instances(core, memory);
}

/// Of operands sorted by size, how many stay.
std::size_t that_stay(const std::vector<Sized>& sorted, const Core& core, std::int64_t capacity) {
  std::size_t stay = sorted.size();
  std::int64_t bits = 0;
  for (const Sized& operand : sorted)
    bits += operand.bits;
  if (bits <= capacity)
    return stay;
  while (stay > 0 && bits > capacity)
    bits -= sorted[--stay].bits;
  while (stay > 0) {
    std::int64_t working = 0;
    for (std::size_t i = stay; i < sorted.size(); ++i)
      working += innermost_bits(core, sorted[i].operand);
    if (capacity - bits >= working)
      break;
    bits -= sorted[--stay].bits;
  }
  return stay;
}

} // namespace

std::vector<MemoryOperand> streamed_operands(const Workload& workload, std::uint32_t tile,
                                             const Chip& chip) {
  const Layer& layer = workload.layers[workload.tiles[tile].layer];
  const Core& core = chip.cores[workload.tiles[tile].core.index()];
  std::array<bool, kOperands> streams{};
  if (layer.alone)
    streams.fill(true);
  for (const Memory& memory : core.memories) {
    std::vector<Sized> sorted;
    bool outermost = false;
    for (const MemoryOperand held : memory.operands) {
      outermost = outermost || core.top(held) == &memory;
      for (const Operand operand : layer.equation) {
        if (memory_of(operand) == held)
          sorted.push_back({held, bits_of(workload, tile, operand)});
      }
    }
    if (!outermost || layer.alone)
      continue;
    std::stable_sort(sorted.begin(), sorted.end(),
                     [](const Sized& a, const Sized& b) { return a.bits < b.bits; });
    for (std::size_t i = that_stay(sorted, core, memory.size.value); i < sorted.size(); ++i) {
      for (const Operand operand : layer.equation) {
        if (memory_of(operand) == sorted[i].operand)
          streams[static_cast<std::size_t>(operand)] = true;
      }
    }
  }
  std::vector<MemoryOperand> found;
  for (const Operand operand : layer.equation) {
    if (streams[static_cast<std::size_t>(operand)])
      found.push_back(memory_of(operand));
  }
  return found;
}

} // namespace monet::stream

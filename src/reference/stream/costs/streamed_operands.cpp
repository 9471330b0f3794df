// Determines the operands that the reference streams from and to the off-chip memory, for core
// costs (own_costs.cpp, cost_match.cpp).
#include "monet/reference/stream_costs.hpp"

#include <algorithm>
#include <numeric>
#include <set>

namespace monet::stream {

namespace {

struct Sized {
  MemoryOperand operand = MemoryOperand::O;
  std::int64_t bits = 0;
};

/// Number of distinct elements that a tile accesses along an axis. Gaps of a stride larger than the
/// kernel do not count, unlike in the tensors that the scheduler moves.
std::int64_t elements(const Layer& layer, std::uint32_t axis) {
  if (axis < layer.dims.size())
    return layer.dims[axis].tile;
  const PartialDim& partial = layer.partial[axis - layer.dims.size()];
  const std::int64_t a = layer.dims[partial.dims[0]].tile;
  const std::int64_t b = layer.dims[partial.dims[1]].tile;
  const std::int64_t common = std::gcd(partial.coefficients[0], partial.coefficients[1]);
  return a * b - std::max<std::int64_t>(0, b - partial.coefficients[0] / common) *
                     (a - partial.coefficients[1] / common);
}

/// Total size in bits of all instances of the operand's innermost memory.
std::int64_t innermost_bits(const Core& core, MemoryOperand operand) {
  const Memory& memory = core.memories[core.levels(operand).front()];
  return memory.size.value * instances(core, memory);
}

/// Number of operands, sorted by size, that stay in a memory of `capacity` bits; others stream.
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

std::int64_t operand_bits(const Layer& layer, Operand operand, int bits) {
  std::int64_t all = bits;
  for (const std::uint32_t axis : layer.use(operand).axes)
    all *= elements(layer, axis);
  return all;
}

std::vector<MemoryOperand> streamed_operands(const Workload& workload, std::uint32_t tile,
                                             const Chip& chip) {
  const Layer& layer = workload.layers[workload.tiles[tile].layer];
  const Core& core = chip.cores[workload.tiles[tile].core.index()];
  std::set<MemoryOperand> streams;
  for (const Memory& memory : core.memories) {
    std::vector<Sized> sorted;
    bool outermost = false;
    for (const MemoryOperand held : memory.operands) {
      outermost = outermost || core.top(held) == &memory;
      for (const Operand operand : layer.equation) {
        if (memory_of(operand) == held)
          sorted.push_back({held, operand_bits(layer, operand, layer.use(operand).partial_bits)});
      }
    }
    if (!outermost || layer.alone)
      continue;
    std::ranges::stable_sort(sorted, {}, &Sized::bits);
    for (std::size_t i = that_stay(sorted, core, memory.size.value); i < sorted.size(); ++i)
      streams.insert(sorted[i].operand);
  }
  std::vector<MemoryOperand> found;
  for (const Operand operand : layer.equation) {
    if (layer.alone || streams.contains(memory_of(operand)))
      found.push_back(memory_of(operand));
  }
  return found;
}

} // namespace monet::stream

#include "monet/model/bypassed.hpp"

#include "monet/schedule/tile_costs.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

namespace monet {

namespace {

/// Memory, operand and bits of an element.
using Key = std::tuple<std::string, MemoryOperand, std::int64_t, std::int64_t>;

/// Those of one tile.
std::set<Key> bypassed_by(const CoreProblem& problem, const Core& core) {
  std::set<Key> found;
  if (problem.compute == ComputeKind::copy)
    return found;
  for (const ProblemOperand& operand : problem.operands) {
    const std::int64_t bits = std::max(operand.bits, operand.partial_bits);
    const std::vector<std::size_t> levels = core.levels(operand.memory);
    for (std::size_t l = 0; l + 1 < levels.size(); ++l) {
      const Memory& memory = core.memories[levels[l]];
      if (bits > memory.size.value)
        found.emplace(memory.name, operand.memory, bits, memory.size.value);
    }
  }
  return found;
}

} // namespace

std::vector<BypassedMemory> bypassed_memories(const TrainingGraph& step, const TileGraph& tiles,
                                              const Chip& chip) {
  std::vector<BypassedMemory> found;
  std::map<Key, std::size_t> known;
  for (std::size_t i = 0; i < tiles.operators.size(); ++i) {
    const OperatorTiling& tiling = tiles.operators[i];
    std::set<CoreId> seen;
    std::set<Key> of_operator;
    for (std::uint32_t t = tiling.first; t < tiling.last; ++t) {
      const Tile& tile = tiles.tiles[t];
      const Core& core = chip.cores[tile.core.index()];
      if (!seen.insert(tile.core).second)
        continue;
      const CoreProblem problem = core_problem(tile, tiles.ranges(TileId(t)), step, chip);
      for (const Key& key : bypassed_by(problem, core)) {
        const auto [at, added] = known.emplace(key, found.size());
        const auto& [memory, operand, bits, size] = key;
        if (added)
          found.push_back({memory, core.name, operand, bits, size, 0, OpId(i)});
        if (of_operator.insert(key).second)
          ++found[at->second].operators;
      }
    }
  }
  return found;
}

} // namespace monet

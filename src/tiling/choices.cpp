// Allocation choices: the sets of cores and the cuts of each operator that an allocation search may
// choose from. Also converts allocations from tiles and to mapping files.
#include "hardware/shared/array_modes.hpp"
#include "tiling/shared/grid.hpp"

#include "monet/tiling/allocation.hpp"

#include <algorithm>

namespace monet {

namespace {

using CoreSet = std::vector<CoreId>;

CoreSet sorted(CoreSet cores) {
  std::ranges::sort(cores);
  return cores;
}

CoreSet subset(const CoreSet& cores, std::uint64_t mask) {
  CoreSet chosen;
  for (std::size_t i = 0; i < cores.size(); ++i) {
    if (((mask >> i) & 1U) != 0)
      chosen.push_back(cores[i]);
  }
  return chosen;
}

/// Number of cores after which the list repeats.
std::size_t period_of(const CoreSet& cores) {
  std::size_t period = 1;
  for (std::size_t i = 1; i < cores.size(); ++i) {
    if (cores[i] != cores[i % period])
      period = i + 1;
  }
  return period;
}

/// Some subsets of many cores: aligned runs of 1, 2, 4, ... neighbours, the n strongest cores
/// (every n up to 16, then doubling), and all cores.
std::vector<CoreSet> some_sets(const CoreSet& cores, const Chip& chip) {
  std::vector<CoreSet> sets;
  const std::size_t n = cores.size();
  for (std::size_t length = 1; length < n; length *= 2) {
    for (std::size_t first = 0; first + length <= n; first += length) {
      const auto begin = cores.begin() + static_cast<std::ptrdiff_t>(first);
      sets.emplace_back(begin, begin + static_cast<std::ptrdiff_t>(length));
    }
  }
  CoreSet ranked = cores;
  std::ranges::stable_sort(ranked, [&](CoreId a, CoreId b) {
    return products_per_cycle(chip.cores[a.index()]) > products_per_cycle(chip.cores[b.index()]);
  });
  constexpr std::size_t kAllCounts = 16;
  for (std::size_t count = 2; count <= n; count = count < kAllCounts ? count + 1 : 2 * count) {
    sets.push_back(sorted({ranked.begin(), ranked.begin() + static_cast<std::ptrdiff_t>(count)}));
  }
  sets.push_back(cores);
  return sets;
}

std::vector<CoreSet> sets_of(const CoreSet& cores, const Chip& chip, std::size_t all_up_to) {
  if (cores.size() > std::min<std::size_t>(all_up_to, 16))
    return some_sets(cores, chip);
  std::vector<CoreSet> sets;
  for (std::uint64_t mask = 1; mask < (std::uint64_t{1} << cores.size()); ++mask)
    sets.push_back(subset(cores, mask));
  return sets;
}

/// Loops along which every slice may be divided, with their maximum number of parts; the largest
/// first.
std::vector<std::pair<std::uint32_t, std::int64_t>> loops_of(const LoopNest& nest,
                                                             const OperatorTiling& sliced) {
  std::vector<std::pair<std::uint32_t, std::int64_t>> loops;
  for (std::uint32_t d = 0; d < nest.dims.size(); ++d) {
    const std::int64_t most = shortest_part(sliced, d);
    if (most > 1 && may_split(nest, d))
      loops.emplace_back(d, most);
  }
  std::ranges::stable_sort(loops, std::greater{}, &std::pair<std::uint32_t, std::int64_t>::second);
  return loops;
}

std::vector<OperatorAllocation> choices_of(OpId id, const LoopNest& nest, const Chip& chip,
                                           const TilePlanner& planner,
                                           const AllocationLimits& limits) {
  const CoreSet cores = sorted(planner.cores(id));
  const OperatorTiling sliced = planner.sliced(id);
  auto loops = loops_of(nest, sliced);
  if (loops.size() > limits.loops)
    loops.resize(limits.loops);
  std::vector<OperatorAllocation> choices;
  const auto add = [&](OperatorAllocation choice) {
    if (std::ranges::find(choices, choice) == choices.end())
      choices.push_back(std::move(choice));
  };
  for (const CoreSet& set : sets_of(cores, chip, limits.all_sets_up_to)) {
    std::vector<LoopCut> given = planner.given_cuts(id, std::ssize(set));
    if (!given.empty()) {
      std::int64_t parts = 1;
      for (const LoopCut& cut : given)
        parts *= std::min<std::int64_t>(cut.count, shortest_part(sliced, cut.dim));
      if (std::ssize(set) <= parts)
        add({set, std::move(given)});
      continue;
    }
    if (set.size() == 1)
      add({set, {}});
    const std::int64_t wanted = std::ssize(set);
    for (const auto& [dim, most] : loops) {
      if (wanted > 1 && wanted <= most)
        add({set, {{dim, static_cast<std::uint32_t>(wanted)}}});
    }
  }
  return choices;
}

} // namespace

std::vector<std::vector<OperatorAllocation>> allocation_choices(const TrainingGraph& step,
                                                                const Chip& chip,
                                                                const TilePlanner& planner,
                                                                const AllocationLimits& limits) {
  std::vector<std::vector<OperatorAllocation>> choices;
  for (std::size_t i = 0; i < step.graph.operators().size(); ++i)
    choices.push_back(choices_of(OpId(i), step.graph.operators()[i].nest, chip, planner, limits));
  return choices;
}

CoreAllocation allocation_of(const TileGraph& tiles) {
  CoreAllocation allocation;
  for (const OperatorTiling& tiling : tiles.operators) {
    OperatorAllocation own;
    std::uint32_t slice = 1; // tiles per slice
    for (std::size_t i = tiling.slice_cuts; i < tiling.cuts.size(); ++i) {
      own.cuts.push_back(tiling.cuts[i]);
      slice *= tiling.cuts[i].count;
    }
    for (std::uint32_t i = 0; i < slice; ++i)
      own.cores.push_back(tiles.tiles[tiling.first + i].core);
    own.cores.resize(period_of(own.cores));
    allocation.push_back(std::move(own));
  }
  return allocation;
}

MappingFile mapping_of(const CoreAllocation& allocation, const Graph& graph,
                       const MappingFile* base) {
  MappingFile mapping = base == nullptr ? MappingFile{} : *base;
  std::erase_if(mapping.entries, [](const MappingEntry& entry) { return entry.allocation_only; });
  for (std::size_t i = 0; i < allocation.size(); ++i) {
    const Operator& op = graph.operators()[i];
    if (allocation[i].cores.empty())
      continue;
    MappingEntry entry;
    entry.name = op.name;
    entry.allocation_only = true;
    entry.core_allocation.emplace();
    for (const CoreId core : allocation[i].cores)
      entry.core_allocation->push_back(core.value);
    for (const LoopCut& cut : allocation[i].cuts) {
      entry.inter_core_tiling.push_back(
          {op.nest.dims[cut.dim].name, TilingFactor::Amount::number, cut.count});
    }
    mapping.entries.push_back(std::move(entry));
  }
  return mapping;
}

} // namespace monet

// Chooses how an operator is cut over cores, and reads the cores and factors of mapping entries;
// tiling.cpp calls it for every operator.
#include "tiling/partition/split.hpp"

#include "base/shared/checked.hpp"
#include "hardware/shared/array_modes.hpp"

#include "monet/tiling/tiling.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <bit>
#include <limits>
#include <optional>
#include <tuple>

namespace monet {

namespace {

/// Bits that all tiles touch together; data that several tiles touch count once per tile.
struct Traffic {
  std::int64_t all = 0;
  std::int64_t offchip = 0; ///< part that passes the off-chip port
};

/// Tensors without a producer, such as weights, come from the off-chip memory, and so do tensors
/// larger than `onchip_bits`, the outermost memories of all cores together.
Traffic traffic(const Graph& graph, const LoopNest& nest, std::span<const std::int64_t> slices,
                std::int64_t onchip_bits, std::span<const std::vector<Interval>> tiles) {
  Traffic bits;
  Box box;
  for (const auto& tile : tiles) {
    for (std::size_t i = 0; i < nest.operands.size(); ++i) {
      const Access& access = nest.operands[i];
      const Tensor& tensor = graph.tensor(access.tensor);
      region_into(access, tile, tensor.shape, box);
      const std::int64_t touched = storage_of(tensor.type, volume(box)).value;
      bits.all = checked_add(bits.all, touched);
      const std::int64_t sharing = slices.empty() ? 1 : slices[i];
      const bool brought = !tensor.producer || size_of(tensor).value > onchip_bits;
      if (sharing > 0 && brought)
        bits.offchip = checked_add(bits.offchip, ceil_div(touched, sharing));
    }
  }
  return bits;
}

std::int64_t onchip_bits(const Chip& chip) {
  std::int64_t bits = 0;
  for (std::size_t i = 0; i < chip.compute_cores(); ++i) {
    const Core& core = chip.cores[i];
    if (!core.memories.empty())
      bits = checked_add(bits, core.memories.back().size.value);
  }
  return bits;
}

/// Cores in the mode that suits an operator's operands.
struct OperatorCores {
  const Chip& chip;
  const Graph& graph;
  const Operator& op;

  const Core& core(CoreId id) const { return in_mode_for(chip.cores[id.index()], graph, op); }
};

/// Cores from strongest to weakest, and the numbers of cores worth trying.
struct RankedCores {
  std::vector<CoreId> cores;
  std::vector<std::int64_t> counts;
  std::int64_t equals = 1; ///< number of cores as strong as the first
};

RankedCores rank(const OperatorCores& chip, std::span<const CoreId> cores) {
  RankedCores ranked{{cores.begin(), cores.end()}, {}, 1};
  const auto strength = [&](CoreId id) { return products_per_cycle(chip.core(id)); };
  std::ranges::stable_sort(ranked.cores, std::ranges::greater{}, strength);
  const auto first = strength(ranked.cores.front());
  while (ranked.equals < std::ssize(cores) &&
         strength(ranked.cores[static_cast<std::size_t>(ranked.equals)]) == first)
    ++ranked.equals;
  constexpr std::size_t kAllCounts = 16; // beyond, only powers of two and steps in strength
  for (std::size_t n = 1; n <= cores.size(); ++n) {
    if (n <= kAllCounts || std::has_single_bit(n) || n == cores.size() ||
        strength(ranked.cores[n]) != strength(ranked.cores[n - 1])) {
      ranked.counts.push_back(static_cast<std::int64_t>(n));
    }
  }
  return ranked;
}

/// Minimum cycles to move `bits` between the off-chip memory and the cores, limited by its port and
/// by the narrowest link on the routes to them. 0 without an off-chip memory.
std::int64_t transfer_cycles(const Chip& chip, std::span<const CoreId> cores, std::int64_t bits) {
  if (!chip.offchip)
    return 0;
  std::int64_t width = offchip_port(chip).read_bits_per_cycle;
  for (const CoreId core : cores) {
    std::int64_t narrowest = std::numeric_limits<std::int64_t>::max();
    for (const LinkId link : chip.route(*chip.offchip, core))
      narrowest = std::min(narrowest, chip.links[link.index()].bandwidth_bits_per_cycle);
    width = std::min(width, narrowest);
  }
  return width > 0 ? ceil_div(bits, width) : 0;
}

/// The `count` strongest cores, sorted by id so that equal parts of different operators meet the
/// same cores.
std::vector<CoreId> strongest(const RankedCores& ranked, std::int64_t count) {
  std::vector<CoreId> chosen(ranked.cores.begin(), ranked.cores.begin() + count);
  std::ranges::sort(chosen);
  return chosen;
}

std::int64_t slowest(const LoopNest& nest, std::span<const Interval> tile,
                     const OperatorCores& chip, std::span<const CoreId> cores) {
  std::int64_t cycles = 0;
  for (const CoreId id : cores)
    cycles = std::max(cycles, estimated_cycles(nest, tile, chip.core(id)));
  return cycles;
}

/// Tiles of a grid, with the first factor outermost.
std::vector<std::vector<Interval>> split_ranges(const LoopNest& nest,
                                                std::span<const SplitFactor> factors) {
  std::vector<std::vector<Interval>> tiles{full_tile(nest)};
  for (const SplitFactor& factor : factors) {
    std::vector<std::vector<Interval>> finer;
    finer.reserve(tiles.size() * static_cast<std::size_t>(factor.parts));
    for (const auto& tile : tiles) {
      for (std::int64_t i = 0; i < factor.parts; ++i) {
        finer.push_back(tile);
        finer.back()[factor.dim] = even_part(nest.dims[factor.dim].size, factor.parts, i);
      }
    }
    tiles = std::move(finer);
  }
  return tiles;
}

/// The loop that alone makes up the axis of the first output; nullopt if none exists.
std::optional<std::size_t> loop_of_axis(const LoopNest& nest, std::size_t axis) {
  const auto output = std::ranges::find_if(
      nest.operands, [](const Access& a) { return a.mode != AccessMode::read; });
  if (output == nest.operands.end() || output->opaque || axis >= output->axes.size())
    return std::nullopt;
  const AxisExpr& expression = output->axes[axis];
  if (expression.data_dependent || expression.terms.size() != 1)
    return std::nullopt;
  return expression.terms.front().dim;
}

} // namespace

Interval even_part(std::int64_t size, std::int64_t parts, std::int64_t index) {
  const std::int64_t small = size / parts;
  const std::int64_t larger = size % parts; // number of parts with one more iteration
  const std::int64_t begin = index * small + std::min(index, larger);
  return {begin, begin + small + (index < larger ? 1 : 0)};
}

std::int64_t estimated_cycles(const LoopNest& nest, std::span<const Interval> tile,
                              const Core& core) {
  const bool unrolled = nest.compute == ComputeKind::mac && !core.dataflow.empty();
  std::int64_t cycles = checked_multiply(products(nest), cycles_per_product(core));
  for (std::size_t d = 0; d < nest.dims.size(); ++d) {
    std::int64_t factor = 1;
    for (std::size_t a = 0; unrolled && a < core.dataflow.size(); ++a) {
      for (const Unrolling& unrolling : core.dataflow[a]) {
        if (unrolling.dim == nest.dims[d].name)
          factor = checked_multiply(factor, std::max<std::int64_t>(1, unrolling.factor));
      }
    }
    cycles = checked_multiply(cycles, ceil_div(tile[d].size(), factor));
  }
  if (!unrolled)
    return ceil_div(cycles, std::max<std::int64_t>(1, core.lanes()));
  std::int64_t at_once = 1; // products per multiplier
  for (const ArrayDim& dim : core.array)
    at_once *= dim.sums ? dim.size : 1;
  return ceil_div(cycles, at_once);
}

Split choose_split(const Graph& graph, const Operator& op, const LoopNest& nest,
                   std::span<const std::int64_t> slices, const Chip& chip,
                   std::span<const CoreId> cores) {
  const OperatorCores own{chip, graph, op};
  const RankedCores ranked = rank(own, cores);
  const Core& first = own.core(ranked.cores.front());
  const std::vector<Interval> whole = full_tile(nest);
  const std::int64_t alone = estimated_cycles(nest, whole, first);
  Split best{{}, strongest(ranked, ranked.equals)}; // the caller picks one of these cores
  if (cores.size() == 1 || alone < kSmallestSplitCycles)
    return best;

  const std::vector<std::vector<Interval>> one{whole};
  // Data that several tiles read are fetched once per tile: more cores may be slower.
  const std::int64_t capacity = onchip_bits(chip);
  const auto key_of = [&](std::int64_t cycles, const std::vector<std::vector<Interval>>& tiles,
                          std::span<const CoreId> users) {
    const Traffic bits = traffic(graph, nest, slices, capacity, tiles);
    const std::int64_t moving = transfer_cycles(chip, users, bits.offchip);
    return std::make_tuple(std::max(cycles, moving), cycles, bits.all);
  };
  auto best_key = key_of(alone, one, best.cores);
  for (std::size_t d = 0; d < nest.dims.size(); ++d) {
    std::vector<Interval> largest = whole;
    const std::int64_t size = nest.dims[d].size;
    if (size < 2 || !may_split(nest, d))
      continue;
    for (const std::int64_t count : ranked.counts) {
      // The fewest parts with the same largest part.
      const std::int64_t parts = ceil_div(size, ceil_div(size, std::min(size, count)));
      if (parts < 2)
        continue;
      largest[d] = even_part(size, parts, 0);
      const auto too_slow = [&](std::int64_t cycles) { return cycles > std::get<0>(best_key); };
      if (too_slow(estimated_cycles(nest, largest, first)))
        continue; // whatever its transfers cost
      const std::vector<CoreId> chosen = strongest(ranked, parts);
      const std::int64_t cycles = slowest(nest, largest, own, chosen);
      if (too_slow(cycles))
        continue;
      const SplitFactor factor{d, parts};
      const auto key = key_of(cycles, split_ranges(nest, {&factor, 1}), chosen);
      if (key < best_key) {
        best_key = key;
        best = {{factor}, chosen};
      }
    }
  }
  return best;
}

std::size_t find_mapped_dim(const LoopNest& nest, std::string_view name) {
  const std::size_t own = find_dim(nest, name);
  if (own < nest.dims.size() || nest.compute == ComputeKind::mac)
    return own;
  const bool pooling = find_dim(nest, "OY") < nest.dims.size();
  if (pooling)
    return name == "K" ? loop_of_axis(nest, 1).value_or(nest.dims.size()) : nest.dims.size();
  constexpr std::array<std::string_view, 4> kFromTheLeft{"B", "H", "D", "K"};
  const auto at = std::ranges::find(kFromTheLeft, name);
  if (at == kFromTheLeft.end())
    return nest.dims.size();
  return loop_of_axis(nest, static_cast<std::size_t>(at - kFromTheLeft.begin()))
      .value_or(nest.dims.size());
}

bool is_compute_core(const Chip& chip, std::size_t core) {
  return !chip.offchip || chip.offchip->index() != core;
}

bool has_offchip_path(const Chip& chip, std::size_t core) {
  return !chip.offchip || (chip.connected(*chip.offchip, CoreId(core)) &&
                           chip.connected(CoreId(core), *chip.offchip));
}

std::vector<CoreId> listed_cores(const MappingEntry& entry, const Chip& chip,
                                 ProblemList& problems) {
  std::vector<CoreId> cores;
  for (const std::int64_t id : *entry.core_allocation) {
    const auto index = static_cast<std::size_t>(id);
    if (id < 0 || index >= chip.cores.size() || !is_compute_core(chip, index)) {
      problems.add(entry.where,
                   fmt::format("entry '{}' allocates core {}, which is not a compute core of '{}'",
                               entry.name, id, chip.name));
    } else if (!has_offchip_path(chip, index)) {
      problems.add(entry.where,
                   fmt::format("entry '{}' allocates core {} ('{}'), which has no path from and to "
                               "the off-chip memory of '{}'",
                               entry.name, id, chip.cores[index].name, chip.name));
    } else {
      cores.push_back(CoreId(index));
    }
  }
  return cores;
}

std::vector<SplitFactor> usable_factors(const LoopNest& nest, std::span<const TilingFactor> given,
                                        std::int64_t chosen) {
  std::vector<SplitFactor> factors;
  for (const TilingFactor& factor : given) {
    const std::size_t dim = find_mapped_dim(nest, factor.dim);
    if (dim == nest.dims.size() || loop_use(nest, dim) == LoopUse::never)
      continue;
    const bool repeated =
        std::ranges::any_of(factors, [&](const SplitFactor& f) { return f.dim == dim; });
    if (repeated)
      continue;
    const std::int64_t size = nest.dims[dim].size;
    std::int64_t parts = factor.factor;
    if (factor.amount == TilingFactor::Amount::all)
      parts = size;
    if (factor.amount == TilingFactor::Amount::chosen)
      parts = chosen;
    factors.push_back({dim, std::clamp<std::int64_t>(parts, 1, size)});
  }
  return factors;
}

void check_mapping(const MappingFile& mapping, const Chip& chip,
                   std::span<const Graph* const> graphs) {
  MappingSubjects subjects;
  for (const Graph* graph : graphs)
    subjects.add(*graph);
  ProblemList problems;
  check_subjects(mapping, subjects, MappingUse::step, problems);
  for (const MappingEntry& entry : mapping.entries) {
    if (entry.core_allocation)
      listed_cores(entry, chip, problems);
  }
  problems.throw_if_any();
}

} // namespace monet

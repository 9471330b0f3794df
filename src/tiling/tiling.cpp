#include "monet/tiling/tiling.hpp"

#include "tiling/edges.hpp"
#include "tiling/grid.hpp"
#include "tiling/split.hpp"

#include "monet/base/checked.hpp"
#include "monet/base/errors.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>

namespace monet {

namespace {

/// More tiles than this of one operator are a mistake in a mapping file, not a schedule.
constexpr std::int64_t kMostTilesPerOperator = 65536;

bool is_compute_core(const Chip& chip, std::size_t core) {
  return !chip.offchip || chip.offchip->index() != core;
}

std::vector<CoreId> capable_cores(const Operator& op, const Chip& chip) {
  std::vector<CoreId> cores;
  for (std::size_t c = 0; c < chip.cores.size(); ++c) {
    if (!is_compute_core(chip, c))
      continue;
    if (can_run(chip.cores[c], op.nest.compute, op.op_type))
      cores.push_back(CoreId(c));
  }
  return cores;
}

/// The cores of the mapping entry, in its order. Unknown ids are the user's mistake.
std::vector<CoreId> allocated_cores(const MappingEntry& entry, const Chip& chip) {
  std::vector<CoreId> cores;
  ProblemList problems;
  for (const std::int64_t id : *entry.core_allocation) {
    const auto index = static_cast<std::size_t>(id);
    if (id < 0 || index >= chip.cores.size() || !is_compute_core(chip, index)) {
      problems.add(entry.where,
                   fmt::format("entry '{}' allocates core {}, which is no compute core of '{}'",
                               entry.name, id, chip.name));
    } else if (std::find(cores.begin(), cores.end(), CoreId(index)) == cores.end()) {
      cores.push_back(CoreId(index));
    }
  }
  problems.throw_if_any();
  return cores;
}

class Tiler {
public:
  Tiler(const TrainingGraph& step, const Chip& chip, const TilingOptions& options)
      : graph_(step.graph), chip_(chip), options_(options), home_(step.graph.tensors().size()) {}

  TileGraph make() {
    TileGraph result;
    std::vector<std::string> homeless;
    for (std::size_t i = 0; i < graph_.operators().size(); ++i) {
      const Operator& op = graph_.operators()[i];
      internal_check(!op.nest.operands.empty(),
                     fmt::format("operator '{}' is a view: fold_views() comes first", op.name));
      const MappingEntry* entry = entry_of(op);
      const std::vector<CoreId> cores = cores_for(op, entry);
      if (cores.empty()) {
        homeless.push_back(fmt::format("'{}' ({})", op.name, op.op_type));
        continue;
      }
      add_tiles(OpId(i), split_for(op, entry, cores), result);
    }
    if (!homeless.empty())
      throw_homeless(homeless);
    make_edges(result, graph_);
    rank_in_order(result);
    return result;
  }

private:
  const MappingEntry* entry_of(const Operator& op) const {
    return options_.mapping ? options_.mapping->find(op.name, op.op_type) : nullptr;
  }

  /// Cores that can run the operator and that its mapping entry allows. A `default` entry that
  /// allows none of them was not written with this operator in mind and restricts nothing. Where a
  /// mapping sends element-wise work to arrays, it is the user's word that they can do it.
  std::vector<CoreId> cores_for(const Operator& op, const MappingEntry* entry) const {
    std::vector<CoreId> capable = capable_cores(op, chip_);
    if (!entry || !entry->core_allocation)
      return capable;
    const std::vector<CoreId> named = allocated_cores(*entry, chip_);
    std::vector<CoreId> allowed = named;
    std::erase_if(allowed, [&](CoreId core) {
      return std::find(capable.begin(), capable.end(), core) == capable.end();
    });
    if (!allowed.empty())
      return allowed;
    if (entry->name == "default" && !capable.empty())
      return capable;
    const bool any_kind = op.nest.compute != ComputeKind::mac &&
                          std::all_of(named.begin(), named.end(), [&](CoreId core) {
                            return chip_.cores[core.index()].operator_types.empty();
                          });
    return any_kind ? named : std::vector<CoreId>{};
  }

  [[noreturn]] void throw_homeless(const std::vector<std::string>& operators) const {
    constexpr std::size_t kShown = 10;
    std::string list;
    for (std::size_t i = 0; i < std::min(kShown, operators.size()); ++i) {
      list += (i == 0 ? "" : ", ") + operators[i];
    }
    if (operators.size() > kShown)
      list += fmt::format(" and {} more", operators.size() - kShown);
    throw InfeasibleError(fmt::format(
        "no core of '{}'{} may run {}: see kind, vector_operators and operator_types of its cores",
        chip_.name, options_.mapping ? " that the mapping allows" : "", list));
  }

  Split split_for(const Operator& op, const MappingEntry* entry,
                  const std::vector<CoreId>& cores) const {
    if (entry) {
      const std::vector<SplitFactor> factors = given_factors(op, *entry, cores.size());
      if (!factors.empty())
        return {factors, cores};
    }
    Split split = choose_split(graph_, op, chip_, cores);
    if (split.factors.empty())
      split.cores = {nearest_core(op, split.cores)};
    return split;
  }

  /// The usable factors of inter_core_tiling: loops that the operator lacks or that may not be cut
  /// are left out, larger factors than the loop are clipped.
  std::vector<SplitFactor> given_factors(const Operator& op, const MappingEntry& entry,
                                         std::size_t cores) const {
    std::vector<SplitFactor> factors;
    std::int64_t tiles = 1;
    for (const TilingFactor& given : entry.inter_core_tiling) {
      const std::size_t dim = find_dim(op.nest, given.dim);
      if (dim == op.nest.dims.size() || !may_split(op.nest, dim))
        continue;
      const bool repeated = std::any_of(factors.begin(), factors.end(),
                                        [&](const SplitFactor& f) { return f.dim == dim; });
      if (repeated)
        continue;
      const std::int64_t size = op.nest.dims[dim].size;
      std::int64_t parts = given.factor;
      if (given.amount == TilingFactor::Amount::all)
        parts = size;
      if (given.amount == TilingFactor::Amount::chosen)
        parts = static_cast<std::int64_t>(cores);
      parts = std::clamp<std::int64_t>(parts, 1, size);
      tiles = checked_multiply(tiles, parts);
      if (tiles > kMostTilesPerOperator) {
        throw InputError(entry.where,
                         fmt::format("inter_core_tiling cuts '{}' into {} tiles, more than {}",
                                     op.name, tiles, kMostTilesPerOperator));
      }
      factors.push_back({dim, parts});
    }
    return factors;
  }

  /// Where most of the operator's input bits were made; the lowest id among equals.
  CoreId nearest_core(const Operator& op, const std::vector<CoreId>& cores) const {
    std::vector<std::int64_t> made(chip_.cores.size(), 0);
    for (const auto& input : op.inputs) {
      if (input && home_[input->index()]) {
        made[home_[input->index()]->index()] += size_of(graph_.tensor(*input)).value;
      }
    }
    CoreId best = cores.front();
    for (const CoreId core : cores) {
      if (made[core.index()] > made[best.index()])
        best = core;
    }
    return best;
  }

  void add_tiles(OpId id, const Split& split, TileGraph& result) {
    const Operator& op = graph_.op(id);
    OperatorTiling tiling = uncut(op.nest);
    for (const SplitFactor& factor : split.factors)
      cut(tiling, factor);
    append_tiles(result, id, std::move(tiling), split.cores);
    if (result.operators.back().size() == 1) {
      for (const auto& output : op.outputs) {
        if (output)
          home_[output->index()] = split.cores.front();
      }
    }
  }

  const Graph& graph_;
  const Chip& chip_;
  TilingOptions options_;
  std::vector<std::optional<CoreId>>
      home_; ///< per tensor: the one core that made it, if it was one
};

} // namespace

TileGraph make_tiles(const TrainingGraph& step, const Chip& chip, const TilingOptions& options) {
  return Tiler(step, chip, options).make();
}

} // namespace monet

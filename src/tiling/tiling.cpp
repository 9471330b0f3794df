// Entry of the tiling stage: finds cores and slices of every operator, divides slices over cores
// and assembles the tile graph with make_edges() and rank_tiles().
#include "monet/tiling/tiling.hpp"

#include "base/shared/checked.hpp"
#include "tiling/partition/split.hpp"
#include "tiling/shared/grid.hpp"
#include "tiling/stacks/slices.hpp"
#include "tiling/stacks/stacks.hpp"

#include "monet/base/errors.hpp"
#include "monet/tiling/allocation.hpp"

#include <fmt/core.h>

#include <algorithm>

namespace monet {

namespace {

/// Maximum number of tiles of one operator; more indicate a mistake in a mapping file.
constexpr std::int64_t kMaxTilesPerOperator = 65536;
/// Maximum number of tiles of all operators together; more would take too long to schedule.
constexpr std::size_t kMaxTiles = std::size_t{1} << 24;

} // namespace

/// Finds the cores and slices of every operator once, then makes the tiles of any number of
/// allocations.
class Tiler {
public:
  Tiler(const TrainingGraph& step, const Chip& chip, const TilingOptions& options)
      : graph_(step.graph), chip_(chip), options_(options),
        cores_(operator_cores(step.graph, chip, options)), slices_(cores_.size()) {
    if (options_.mode == TilingMode::fused)
      plan_slices(planned_);
    if (options_.allocation == nullptr && options_.mapping != nullptr)
      read_allocation();
    else if (options_.allocation != nullptr)
      allocation_ = *options_.allocation;
    options_.allocation = nullptr; // the caller may destroy it
  }

  const CoreAllocation& given() const { return allocation_; }
  const std::vector<CoreId>& cores(OpId id) const { return cores_[id.index()]; }

  TileGraph make(const CoreAllocation& allocation) const {
    const std::size_t count = graph_.operators().size();
    internal_check(allocation.empty() || allocation.size() == count,
                   "an allocation has an entry for every operator");
    TileGraph result;
    result.stack_of = planned_.stack_of;
    Homes home(graph_.tensors().size());
    for (std::size_t i = 0; i < count; ++i)
      add_tiles(OpId(i), allocation.empty() ? OperatorAllocation{} : allocation[i], result, home);
    make_edges(result, graph_);
    if (options_.mode == TilingMode::fused)
      rank_tiles(result, turns_, in_turns_);
    else
      rank_in_order(result);
    free_updates(result);
    return result;
  }

  /// Exempts updates from turns: they keep their ranks but do not delay the next turn, since some
  /// updates wait for all other tiles.
  void free_updates(TileGraph& tiles) const {
    for (std::size_t i = 0; !tiles.turn.empty() && i < tiles.operators.size(); ++i) {
      if (graph_.op(OpId(i)).phase == Phase::update)
        std::fill(tiles.turn.begin() + tiles.operators[i].first,
                  tiles.turn.begin() + tiles.operators[i].last, TileGraph::kNoTurn);
    }
  }

  OperatorTiling sliced(OpId id) const {
    OperatorTiling tiling = uncut(graph_.op(id).nest);
    for (const SliceCut& cut : slices_[id.index()]) {
      tiling.parts[cut.dim] = cut.parts;
      tiling.cuts.push_back({cut.dim, static_cast<std::uint32_t>(cut.parts.size())});
      ++tiling.slice_cuts;
    }
    return tiling;
  }

  /// The mapping's cuts of a slice over `cores` cores; empty if the mapping leaves the choice to
  /// the tool.
  std::vector<LoopCut> given_cuts(OpId id, std::int64_t cores) const {
    const Operator& op = graph_.op(id);
    std::vector<LoopCut> cuts;
    if (const MappingEntry* entry = entry_of(op)) {
      for (const SplitFactor& factor : usable_factors(op.nest, entry->inter_core_tiling, cores))
        cuts.push_back(
            {static_cast<std::uint32_t>(factor.dim), static_cast<std::uint32_t>(factor.parts)});
    }
    return cuts;
  }

  /// Stacks and slices, as given or as chosen by the tool.
  const FusionPlan& plan() const { return chosen_; }

private:
  /// Per tensor: the core that made it; nullopt if several cores did.
  using Homes = std::vector<std::optional<CoreId>>;

  const MappingEntry* entry_of(const Operator& op) const {
    return options_.mapping ? options_.mapping->find(op.name, op.op_type) : nullptr;
  }

  /// Chooses the stacks and the slices of every operator; stores `stack_of` in `result`.
  void plan_slices(TileGraph& result) {
    const std::size_t count = graph_.operators().size();
    given_loops_.resize(count);
    given_.resize(count);
    for (std::size_t i = 0; i < count; ++i)
      read_slices(graph_.operators()[i], given_loops_[i], given_[i]);
    SliceFinder finder(graph_, chip_, cores_, given_, slices_);
    std::vector<const StackSlices*> asked(count, nullptr); // indexed by first operator of the stack
    for (std::size_t s = 0; options_.stacks && s < options_.stacks->size(); ++s) {
      const auto& members = (*options_.stacks)[s];
      if (!members.empty() && s < options_.slices.size() && options_.slices[s])
        asked[std::ranges::min_element(members)->index()] = &*options_.slices[s];
    }
    Stacks stacks =
        complete_stacks(graph_, options_.stacks ? *options_.stacks : finder.stacks(options_.halo));
    in_turns_.assign(stacks.members.size(), false);
    for (std::size_t s = 0; s < stacks.members.size(); ++s) {
      const auto& members = stacks.members[s];
      if (const StackSlices* slices = asked[members.front().index()]) {
        take_turns(s, slices->turns);
        take(members, finder.cut(members, options_.halo, *slices));
        chosen_.stacks.push_back(members);
        chosen_.slices.emplace_back(*slices);
        continue;
      }
      std::optional<StackSlices> chosen = choose_slices(members, finder);
      if (members.size() > 1 || (chosen && !chosen->cuts.empty())) {
        chosen_.stacks.push_back(members);
        chosen_.slices.push_back(std::move(chosen));
      }
    }
    result.stack_of = std::move(stacks.stack_of);
  }

  void take_turns(std::size_t stack, std::int64_t turns) {
    internal_check(turns > 0 && turns <= StackSlices::kMaxTurns &&
                       (turns == 1 || turns_ == 1 || turns == turns_),
                   "stacks of one plan have equally many turns");
    in_turns_[stack] = turns > 1;
    turns_ = std::max(turns_, turns);
  }

  /// Sets the slices of a stack for which none were requested. Returns the tool's choice; nullopt
  /// if slices come from the mapping or the operator stays whole.
  std::optional<StackSlices> choose_slices(const std::vector<OpId>& members, SliceFinder& finder) {
    if (members.size() == 1) {
      const OpId id = members.front();
      const MappingEntry* entry = entry_of(graph_.op(id));
      if (entry && !entry->intra_core_tiling.empty() && entry->name == graph_.op(id).name) {
        slices_[id.index()] = given_[id.index()];
        return std::nullopt;
      }
      if (options_.stacks || !finder.alone_in_slices(id))
        return std::nullopt;
      std::vector<Slices> slices(1);
      auto chosen = finder.fill_in(members, Halo::cached, 1, StackSlicer::Loops(1), slices);
      take(members, std::move(slices));
      return chosen;
    }
    StackSlicer::Loops loops;
    std::vector<Slices> slices;
    for (const OpId member : members) {
      loops.push_back(given_loops_[member.index()]);
      slices.push_back(given_[member.index()]);
    }
    auto chosen =
        finder.fill_in(members, options_.halo, options_.stacks ? 2 : 1, std::move(loops), slices);
    take(members, std::move(slices));
    return chosen;
  }

  void take(const std::vector<OpId>& members, std::vector<Slices> slices) {
    for (std::size_t m = 0; m < members.size(); ++m)
      slices_[members[m].index()] = std::move(slices[m]);
  }

  /// Reads the mapping's intra-core factors of one operator: its first loop, and the slices of all
  /// factors with a known count.
  void read_slices(const Operator& op, std::optional<std::uint32_t>& loop, Slices& slices) const {
    const MappingEntry* entry = entry_of(op);
    if (!entry)
      return;
    std::int64_t tiles = 1;
    for (const TilingFactor& given : entry->intra_core_tiling) {
      for (const SplitFactor& factor : usable_factors(op.nest, {&given, 1}, 1)) {
        const auto dim = static_cast<std::uint32_t>(factor.dim);
        const bool repeated =
            std::ranges::any_of(slices, [&](const SliceCut& cut) { return cut.dim == dim; });
        if (repeated)
          continue;
        if (!loop)
          loop = dim;
        if (given.amount == TilingFactor::Amount::chosen)
          continue; // the stack determines the count
        tiles = checked_multiply(tiles, factor.parts);
        check_tiles(op, *entry, "intra_core_tiling", tiles);
        if (factor.parts > 1)
          slices.push_back(even_slices(op.nest, dim, factor.parts));
      }
    }
    std::ranges::reverse(slices); // the first factor of a file varies fastest
  }

  static void check_tiles(const Operator& op, const MappingEntry& entry, std::string_view key,
                          std::int64_t tiles) {
    if (tiles > kMaxTilesPerOperator) {
      throw InputError(entry.where, fmt::format("{} cuts '{}' into {} tiles, more than {}", key,
                                                op.name, tiles, kMaxTilesPerOperator));
    }
  }

  /// Reads the cores and cuts that `allocation_only` entries of the mapping assign to single
  /// operators.
  void read_allocation() {
    for (std::size_t i = 0; i < graph_.operators().size(); ++i) {
      const Operator& op = graph_.operators()[i];
      const MappingEntry* entry = options_.mapping->find_allocation(op.name);
      if (entry == nullptr)
        continue;
      allocation_.resize(graph_.operators().size());
      OperatorAllocation& own = allocation_[i];
      if (entry->core_allocation)
        own.cores = listed_cores(*entry, chip_);
      check_cores(OpId(i), own, entry->where);
      std::int64_t tiles = tile_count(sliced(OpId(i)));
      for (const SplitFactor& factor :
           usable_factors(op.nest, entry->inter_core_tiling, std::ssize(own.cores))) {
        tiles = checked_multiply(tiles, factor.parts);
        check_tiles(op, *entry, "inter_core_tiling", tiles);
        own.cuts.push_back(
            {static_cast<std::uint32_t>(factor.dim), static_cast<std::uint32_t>(factor.parts)});
      }
    }
  }

  /// Throws InputError if a core of the allocation may not run the operator.
  void check_cores(OpId id, const OperatorAllocation& own, const SourceLoc& where) const {
    const Operator& op = graph_.op(id);
    const auto& cores = cores_[id.index()];
    for (const CoreId core : own.cores) {
      if (std::ranges::find(cores, core) == cores.end()) {
        throw InputError(where, fmt::format("core {} ('{}') may not run '{}' ({})", core.value,
                                            chip_.cores[core.index()].name, op.name, op.op_type));
      }
    }
  }

  /// Cuts every slice by the allocation's cuts; returns the allocation's cores.
  std::vector<CoreId> share_out(OpId id, const OperatorAllocation& own,
                                OperatorTiling& tiling) const {
    check_cores(id, own, {});
    const LoopNest& nest = graph_.op(id).nest;
    std::int64_t tiles = tile_count(tiling);
    for (const LoopCut& wanted : own.cuts) {
      internal_check(wanted.dim < nest.dims.size() &&
                         loop_use(nest, wanted.dim) != LoopUse::never && wanted.count > 0,
                     "an allocation cuts a loop that may not be cut");
      const std::int64_t parts =
          std::min<std::int64_t>(wanted.count, shortest_part(tiling, wanted.dim));
      tiles = checked_multiply(tiles, parts);
      internal_check(tiles <= kMaxTilesPerOperator, "an allocation makes too many tiles");
      cut(tiling, {wanted.dim, parts});
    }
    return own.cores;
  }

  /// Cuts every slice over cores, by the mapping's factors or by choose_split(); returns the cores.
  std::vector<CoreId> share_out(OpId id, OperatorTiling& tiling, const Homes& home) const {
    const Operator& op = graph_.op(id);
    const std::vector<CoreId>& cores = cores_[id.index()];
    if (const MappingEntry* entry = entry_of(op)) {
      std::vector<SplitFactor> factors =
          usable_factors(op.nest, entry->inter_core_tiling, std::ssize(cores));
      if (!factors.empty()) {
        std::int64_t tiles = tile_count(tiling);
        for (SplitFactor& factor : factors) {
          factor.parts = std::min(factor.parts, shortest_part(tiling, factor.dim));
          tiles = checked_multiply(tiles, factor.parts);
          check_tiles(op, *entry, "inter_core_tiling", tiles);
          cut(tiling, factor);
        }
        return cores;
      }
    }
    Split split = chosen_split(id, tiling);
    for (const SplitFactor& factor : split.factors)
      cut(tiling, {factor.dim, std::min(factor.parts, shortest_part(tiling, factor.dim))});
    if (split.factors.empty())
      return {nearest_core(op, split.cores, home)};
    return split.cores;
  }

  Split chosen_split(OpId id, const OperatorTiling& tiling) const {
    const Operator& op = graph_.op(id);
    if (tiling.slice_cuts == 0)
      return choose_split(graph_, op, op.nest, {}, chip_, cores_[id.index()]);
    LoopNest slice = op.nest;
    for (const LoopCut& cut : tiling.cuts)
      slice.dims[cut.dim].size = tiling.parts[cut.dim][cut.count / 2].size();
    // Excludes loops that may not be cut in the whole nest: parts may be disjoint in one slice
    // only.
    for (std::size_t d = 0; d < slice.dims.size(); ++d)
      slice.dims[d].coupled = !may_split(op.nest, d);
    const std::int64_t turns = in_turns_[planned_.stack_of[id.index()]] ? turns_ : 1;
    std::vector<std::int64_t> sharing; // empty: a turn runs the operator whole
    for (const Access& access : op.nest.operands) {
      if (tile_count(tiling) > turns)
        sharing.push_back(slices_sharing(access, tiling, turns));
    }
    return choose_split(graph_, op, slice, sharing, chip_, cores_[id.index()]);
  }

  /// Number of slices of one turn that read the same part of the operand; 0 if an operator produces
  /// the operand.
  std::int64_t slices_sharing(const Access& access, const OperatorTiling& tiling,
                              std::int64_t turns) const {
    if (graph_.tensor(access.tensor).producer)
      return 0;
    std::int64_t slices = 1;
    for (const LoopCut& cut : tiling.cuts) {
      const auto along = [&](const AxisExpr& axis) { return has_loop(axis, cut.dim); };
      if (std::ranges::none_of(access.axes, along))
        slices = checked_multiply(slices, cut.count);
    }
    return ceil_div(slices, turns);
  }

  /// The core that made most of the operator's input bits; the lowest id among equals.
  CoreId nearest_core(const Operator& op, const std::vector<CoreId>& cores,
                      const Homes& home) const {
    std::vector<std::int64_t> made(chip_.cores.size(), 0);
    for (const auto& input : op.inputs) {
      if (input && home[input->index()])
        made[home[input->index()]->index()] += size_of(graph_.tensor(*input)).value;
    }
    CoreId best = cores.front();
    for (const CoreId core : cores) {
      if (made[core.index()] > made[best.index()])
        best = core;
    }
    return best;
  }

  void add_tiles(OpId id, const OperatorAllocation& own, TileGraph& result, Homes& home) const {
    const Operator& op = graph_.op(id);
    OperatorTiling tiling = sliced(id);
    const std::vector<CoreId> cores =
        own.cores.empty() ? share_out(id, tiling, home) : share_out(id, own, tiling);
    if (result.tiles.size() + static_cast<std::size_t>(tile_count(tiling)) > kMaxTiles) {
      throw InfeasibleError(fmt::format("the mapping cuts '{}' and the operators before it into "
                                        "more than {} tiles",
                                        op.name, kMaxTiles));
    }
    append_tiles(result, id, std::move(tiling), cores);
    if (cores.size() > 1 && result.operators.back().size() > 1)
      return;
    for (const auto& output : op.outputs) {
      if (output)
        home[output->index()] = cores.front();
    }
  }

  const Graph& graph_;
  const Chip& chip_;
  TilingOptions options_;
  CoreLists cores_;            ///< per operator: cores that may run it
  std::vector<Slices> slices_; ///< per operator
  CoreAllocation allocation_;  ///< as given; empty: cores and factors of the mapping
  TileGraph planned_;          ///< holds only the stacks
  std::vector<Slices> given_;  ///< per operator: slices from the mapping
  StackSlicer::Loops given_loops_;
  std::int64_t turns_ = 1;     ///< of the stacks that take turns
  std::vector<bool> in_turns_; ///< per stack
  FusionPlan chosen_;
};

TilingOptions TilingOptions::with(FusionPlan plan) const {
  TilingOptions options = *this;
  options.mode = TilingMode::fused;
  options.stacks = std::move(plan.stacks);
  options.slices = std::move(plan.slices);
  if (!plan.idle.empty())
    options.idle = std::move(plan.idle);
  return options;
}

TileGraph make_tiles(const TrainingGraph& step, const Chip& chip, const TilingOptions& options) {
  const Tiler tiler(step, chip, options);
  return tiler.make(tiler.given());
}

TilePlanner::TilePlanner(const TrainingGraph& step, const Chip& chip, const TilingOptions& options)
    : tiler_(std::make_unique<Tiler>(step, chip, options)) {}
TilePlanner::~TilePlanner() = default;

const CoreAllocation& TilePlanner::given() const {
  return tiler_->given();
}
const std::vector<CoreId>& TilePlanner::cores(OpId op) const {
  return tiler_->cores(op);
}
OperatorTiling TilePlanner::sliced(OpId op) const {
  return tiler_->sliced(op);
}
std::vector<LoopCut> TilePlanner::given_cuts(OpId op, std::int64_t cores) const {
  return tiler_->given_cuts(op, cores);
}
TileGraph TilePlanner::tiles(const CoreAllocation& allocation) const {
  return tiler_->make(allocation);
}

FusionPlan automatic_fusion(const TrainingGraph& step, const Chip& chip,
                            const TilingOptions& options) {
  TilingOptions own = options;
  own.mode = TilingMode::fused;
  FusionPlan plan = Tiler(step, chip, own).plan();
  plan.idle = options.idle;
  return plan;
}

FusionPlan fusion_of(const TrainingGraph& step, const Chip& chip, const TilingOptions& options) {
  if (options.mode == TilingMode::layer_by_layer)
    return {};
  return options.stacks ? FusionPlan{*options.stacks, options.slices, options.idle}
                        : automatic_fusion(step, chip, options);
}

} // namespace monet

#include "monet/optimise/joint.hpp"

#include "monet/base/errors.hpp"
#include "monet/base/parallel.hpp"
#include "monet/optimise/allocation.hpp"
#include "monet/optimise/checkpointing.hpp"
#include "monet/optimise/fusion.hpp"
#include "monet/optimise/recompute_search.hpp"
#include "monet/optimise/step_bounds.hpp"
#include "monet/optimise/step_mode.hpp"
#include "monet/tiling/allocation.hpp"
#include "monet/training/insert_recompute.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>

namespace monet {

namespace {

constexpr std::size_t kRefined = 3; // plans of recomputation

/// A way to run the step that has not been modelled yet.
struct Variant {
  std::string name;
  std::shared_ptr<const TrainingGraph> step;
  std::vector<OpId> runs;
  TilingMode mode = TilingMode::layer_by_layer;
  std::optional<FusionPlan> fusion; ///< none: make_tiles() chooses
  std::shared_ptr<const CoreAllocation> allocation;
  Priority priority = Priority::latency;
};

class JointSearch {
public:
  JointSearch(const TrainingGraph& step, const Chip& chip, const JointOptions& options,
              const SearchControl& control)
      : chip_(chip), options_(options), control_(control),
        step_(std::make_shared<const TrainingGraph>(step)) {}

  JointResult run() {
    result_.base = model(base_variant());
    note(result_.base);
    set_budget();
    set_bound();
    try_all({fused(base_variant())});
    recompute(result_.base, "");
    for (std::int64_t round = 1; round < options_.rounds && !interrupted(); ++round) {
      const std::size_t before = best();
      recompute(model(tried_[before].first), fmt::format(", round {}", round + 1));
      if (best() == before)
        break; // the same costs would give the same plans again
    }
    // Groups and cores, for the best way without recomputation and for the best of all.
    const bool limited = once_fits();
    refine(best_of(once, limited), limited);
    for (const std::size_t index : best_recomputed())
      refine(index, true);
    choose();
    return std::move(result_);
  }

private:
  using Tried = std::pair<Variant, StepFigures>;

  bool interrupted() {
    result_.found.interrupted = result_.found.interrupted || control_.interrupted();
    return result_.found.interrupted;
  }

  Variant base_variant() const {
    Variant variant;
    variant.name = "base";
    variant.step = step_;
    variant.priority = priority();
    return variant;
  }
  Priority priority() const { return options_.schedule.priority; }

  Variant fused(Variant variant) {
    variant.name = variant.name == "base" ? "fused" : variant.name + ", fused";
    variant.mode = TilingMode::fused;
    try {
      StepOptions step{tiling_of(variant), schedule_of(variant), {}};
      step.tiling.allocation = nullptr;
      step.tiling.idle.assign(chip_.cores.size(), false); // which do is searched
      StepChoice chosen =
          choose_step(*variant.step, chip_, step, StepMode::fused, options_.objective, {costs_});
      if (chosen.tiling.stacks)
        variant.fusion =
            FusionPlan{std::move(*chosen.tiling.stacks), std::move(chosen.tiling.slices)};
    } catch (const InfeasibleError&) { // found out where it is modelled
    }
    return variant;
  }

  TilingOptions tiling_of(const Variant& variant) const {
    TilingOptions tiling = options_.tiling;
    tiling.mode = variant.mode;
    if (variant.mode == TilingMode::layer_by_layer || !variant.runs.empty())
      tiling.stacks.reset(); // those given are of the step as it was
    if (variant.fusion)
      tiling = tiling.with(*variant.fusion);
    tiling.allocation = variant.allocation.get();
    return tiling;
  }
  ScheduleOptions schedule_of(const Variant& variant) const {
    ScheduleOptions schedule_options = options_.schedule;
    schedule_options.priority = variant.priority;
    return schedule_options;
  }

  JointPoint model(const Variant& variant) {
    JointPoint point;
    point.name = variant.name;
    point.step = variant.step;
    point.runs = variant.runs;
    point.allocation = variant.allocation;
    point.tiling = tiling_of(variant);
    point.priority = variant.priority;
    point.modelled =
        model_step(*point.step, chip_, {point.tiling, schedule_of(variant), {}}, {costs_});
    return point;
  }

  void note(const JointPoint& base) {
    tried_.emplace_back(base_variant(), base.modelled.figures);
    tell();
  }

  void set_budget() {
    if (options_.budget)
      result_.budget_bytes = options_.budget(result_.base.modelled.figures.peak_memory_bytes);
  }

  /// With recomputation and any halo, every operator runs at least once, every operand that nobody
  /// makes is read and every result written.
  void set_bound() {
    StepBoundOptions bounds;
    bounds.made_once = false;
    const TilePlanner planner(*step_, chip_, result_.base.tiling);
    for (std::size_t i = 0; i < step_->graph.operators().size(); ++i)
      bounds.cores.push_back(planner.cores(OpId(i)));
    result_.found.bound = step_bounds(*step_, chip_, bounds).least(options_.objective);
  }

  /// Models all of them, and what needs more than the budget in other orders, too: work that is
  /// done as soon as it can be makes again early what is wanted late.
  void try_all(const std::vector<Variant>& variants) {
    const std::size_t begin = tried_.size();
    try_each(variants);
    std::vector<Variant> others;
    for (std::size_t i = begin; i < tried_.size(); ++i) {
      if (within_budget(tried_[i].second))
        continue;
      for (const auto& [order, name] :
           {std::pair(Priority::memory, "memory"), std::pair(Priority::order, "order")}) {
        if (order == tried_[i].first.priority || tried_[i].first.priority != priority())
          continue;
        others.push_back(tried_[i].first);
        others.back().priority = order;
        others.back().name += fmt::format(", priority {}", name);
      }
    }
    if (!others.empty() && !interrupted())
      try_each(others);
  }

  /// Models all of them; those that cannot be scheduled, or come too late, are left out.
  void try_each(const std::vector<Variant>& variants) {
    std::vector<std::optional<StepFigures>> trials(variants.size());
    parallel_for(variants.size(), control_.jobs, [&](std::size_t i) {
      if (control_.interrupted())
        return;
      try {
        trials[i] = model(variants[i]).modelled.figures;
      } catch (const InfeasibleError&) { // something does not fit this way
      }
    });
    for (std::size_t i = 0; i < variants.size(); ++i) {
      if (trials[i])
        tried_.emplace_back(variants[i], *trials[i]);
    }
    interrupted();
    tell();
  }

  void tell() const {
    const double value = tried_[best()].second.value(options_.objective);
    control_.tell(
        {"joint", static_cast<std::int64_t>(tried_.size()), 0, value, result_.found.bound});
  }

  bool within_budget(const StepFigures& figures) const {
    return result_.budget_bytes == 0 || figures.peak_memory_bytes <= result_.budget_bytes;
  }

  static bool once(const Variant& variant) { return variant.runs.empty(); }
  /// Otherwise the budget asks for recomputation, and without it the objective alone counts.
  bool once_fits() const {
    return std::ranges::any_of(tried_, [&](const Tried& tried) {
      return once(tried.first) && within_budget(tried.second);
    });
  }

  bool better(const StepFigures& a, const StepFigures& b, bool limited) const {
    const bool a_in = !limited || within_budget(a);
    const bool b_in = !limited || within_budget(b);
    if (a_in != b_in)
      return a_in;
    if (!a_in)
      return a.peak_memory_bytes < b.peak_memory_bytes;
    return std::pair(a.value(options_.objective), a.peak_memory_bytes) <
           std::pair(b.value(options_.objective), b.peak_memory_bytes);
  }

  template <class Allowed>
  std::size_t best_of(Allowed&& allowed, bool limited) const {
    std::size_t found = tried_.size();
    for (std::size_t i = 0; i < tried_.size(); ++i) {
      if (allowed(tried_[i].first) &&
          (found == tried_.size() || better(tried_[i].second, tried_[found].second, limited)))
        found = i;
    }
    return found;
  }
  std::size_t best() const {
    return best_of([](const Variant&) { return true; }, true);
  }

  /// The best ways of a few plans of recomputation.
  std::vector<std::size_t> best_recomputed() const {
    std::vector<std::size_t> order;
    for (std::size_t i = 0; i < tried_.size(); ++i)
      if (!once(tried_[i].first))
        order.push_back(i);
    std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) {
      return better(tried_[a].second, tried_[b].second, true);
    });
    std::vector<std::size_t> best;
    for (const std::size_t i : order) {
      const bool same = std::ranges::any_of(best, [&](std::size_t other) {
        return tried_[other].first.runs == tried_[i].first.runs;
      });
      if (!same && best.size() < kRefined)
        best.push_back(i);
    }
    return best;
  }

  /// Searches groups for the step of a way that was tried, and then cores for its operators.
  void refine(std::size_t index, bool limited) {
    SearchControl quiet = control_;
    quiet.progress = nullptr;
    if (options_.fusion_evaluations > 0 && !interrupted())
      index = groups(index, limited, quiet);
    if (options_.allocation_evaluations > 0 && !interrupted())
      keep_better(index, with_cores(tried_[index].first, quiet), limited);
  }

  std::size_t keep_better(std::size_t index, const Variant& variant, bool limited) {
    const std::size_t made = tried_.size();
    try_all({variant});
    return made < tried_.size() && better(tried_[made].second, tried_[index].second, limited)
               ? made
               : index;
  }

  std::size_t groups(std::size_t index, bool limited, const SearchControl& control) {
    try {
      return keep_better(index, with_groups(tried_[index].first, limited, control), limited);
    } catch (const InfeasibleError&) { // no groups within the budget
      return index;
    }
  }

  Variant with_groups(Variant variant, bool limited, const SearchControl& control) {
    FusionOptions search;
    search.objective = options_.objective;
    search.evaluations = options_.fusion_evaluations;
    search.group_evaluations = 15 * options_.fusion_evaluations;
    TilingOptions tiling = options_.tiling;
    if (!variant.runs.empty())
      tiling.stacks.reset();
    const FusionResult found =
        optimise_fusion({*variant.step, chip_, costs_, tiling, schedule_of(variant),
                         limited ? result_.budget_bytes : 0},
                        search, control);
    variant.name += ", groups searched";
    variant.mode = TilingMode::fused;
    variant.fusion = found.plan;
    return variant;
  }

  Variant with_cores(Variant variant, const SearchControl& control) {
    AllocationEvaluator evaluator(*variant.step, chip_, tiling_of(variant), schedule_of(variant));
    AllocationSearchOptions search;
    search.objective = options_.objective;
    search.evaluations = static_cast<std::size_t>(options_.allocation_evaluations);
    const AllocationResult found = search_allocation(evaluator, search, control);
    variant.name += ", cores searched";
    variant.allocation =
        std::make_shared<const CoreAllocation>(evaluator.allocation(found.best.plan));
    return variant;
  }

  /// Limits from the peak of the step down to what no plan is below, in equal steps.
  std::vector<std::int64_t> limits(const CheckpointSpace& space) const {
    const std::int64_t most = replay(space.problem, store_everything(space.problem)).peak_bytes;
    const std::int64_t least = std::min(most, peak_bound(space.problem));
    std::vector<std::int64_t> limits;
    for (std::int64_t i = 1; i <= options_.levels; ++i)
      limits.push_back(most - (most - least) / (options_.levels + 1) * i);
    return limits;
  }

  /// Plans of recomputation with the costs of a schedule, each layer by layer and fused.
  void recompute(const JointPoint& costed, const std::string& suffix) {
    if (interrupted() || options_.levels == 0)
      return;
    const OperatorCosts costs = costs_of(costed);
    const std::vector<std::int64_t>& used =
        options_.objective == Objective::latency ? costs.cycles : costs.energy;
    const CheckpointSpace space = checkpoint_space(*step_, used);
    RecomputeSearchOptions search;
    search.effort = options_.plan_effort;
    SearchControl quiet = control_;
    quiet.progress = nullptr;
    std::vector<Variant> variants;
    for (const std::int64_t limit : limits(space)) {
      const RecomputeResult found = search_recompute(space.problem, limit, search, quiet);
      if (!found.plan)
        break;
      search.starts = {*found.plan};
      std::vector<OpId> runs = runs_of(*found.plan);
      if (runs.size() == step_->graph.operators().size() || !seen_.insert(runs).second)
        continue;
      Variant variant;
      variant.name =
          fmt::format("{} runs again{}", runs.size() - step_->graph.operators().size(), suffix);
      variant.step = std::make_shared<const TrainingGraph>(with_recomputation(*step_, runs));
      variant.runs = std::move(runs);
      variant.priority = priority();
      variants.push_back(variant);
      variants.push_back(fused(std::move(variant)));
    }
    try_all(variants);
  }

  /// Of the operators of the step given: the first run of each, which keeps its name.
  OperatorCosts costs_of(const JointPoint& point) const {
    OperatorCosts all = operator_costs(point.modelled.timeline, *point.step);
    if (point.runs.empty())
      return all;
    std::map<std::string_view, std::size_t> place;
    for (std::size_t i = 0; i < all.cycles.size(); ++i)
      place[point.step->graph.operators()[i].name] = i;
    OperatorCosts first;
    for (const Operator& op : step_->graph.operators()) {
      const std::size_t i = place.at(op.name);
      first.cycles.push_back(all.cycles[i]);
      first.energy.push_back(all.energy[i]);
    }
    return first;
  }

  void choose() {
    const auto corner = [&](bool any_runs, bool any_mode) {
      return best_of(
          [&](const Variant& v) {
            return (any_runs || once(v)) && (any_mode || v.mode == TilingMode::layer_by_layer);
          },
          any_runs || once_fits());
    };
    const std::array<std::size_t, 4> places{0, corner(false, true), corner(true, false),
                                            corner(true, true)};
    const std::array<JointPoint*, 4> corners{&result_.base, &result_.fused, &result_.checkpointed,
                                             &result_.both};
    for (std::size_t i = 1; i < places.size(); ++i) { // one way can be more than one corner
      const auto same = std::find(places.begin(), places.begin() + i, places[i]) - places.begin();
      const auto known = static_cast<std::size_t>(same);
      *corners[i] = known < i ? *corners[known] : model(tried_[places[i]].first);
    }
    for (const auto& [variant, figures] : tried_)
      result_.trials.push_back({variant.name, figures});
    if (within_budget(tried_[best()].second))
      result_.found.best = result_.both.modelled.figures.value(options_.objective);
  }

  const Chip& chip_;
  const JointOptions& options_;
  const SearchControl& control_;
  std::shared_ptr<const TrainingGraph> step_;
  CoreCostCache costs_;
  std::vector<Tried> tried_; ///< the base first
  std::set<std::vector<OpId>> seen_;
  JointResult result_;
};

} // namespace

JointResult optimise_jointly(const TrainingGraph& step, const Chip& chip,
                             const JointOptions& options, const SearchControl& control) {
  return JointSearch(step, chip, options, control).run();
}

} // namespace monet

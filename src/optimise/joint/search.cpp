// The joint search. It starts from baselines and recomputation plans, runs the group and core
// searches alone, then both for the best results at falling amounts of memory. The memory budget
// finally selects the result.
#include "base/shared/amounts.hpp"
#include "base/shared/parallel.hpp"
#include "optimise/joint/archive.hpp"
#include "optimise/joint/plans.hpp"
#include "optimise/joint/ways.hpp"
#include "optimise/shared/searches.hpp"
#include "optimise/shared/step_bounds.hpp"

#include "monet/base/errors.hpp"
#include "monet/base/stop.hpp"
#include "monet/optimise/allocation.hpp"
#include "monet/optimise/checkpoint_search.hpp"
#include "monet/optimise/joint.hpp"
#include "monet/optimise/step_mode.hpp"
#include "monet/tiling/allocation.hpp"
#include "monet/training_graph/training.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

namespace monet {

const SearchInfo kJointSearch{
    .name = "joint",
    .decides = "all of these",
    .options = "JointOptions",
    .exact = "never",
    .bound = "every recomputation, fusion and allocation",
    .evaluation = "one schedule of the step",
    .method = "the searches above in turns, at falling amounts of memory",
};

namespace {

using Tried = JointArchive::Tried;

bool once(const JointWay& way) {
  return way.once();
}
bool recomputed(const JointWay& way) {
  return !way.once();
}

class JointSearch {
public:
  JointSearch(const TrainingGraph& step, const Chip& chip, const JointOptions& options,
              const SearchControl& control)
      : chip_(chip), options_(options), control_(control), quiet_(control),
        ways_(step, chip, options, costs_), step_(ways_.step()), archive_(options.objective),
        for_budget_(options.objective) {
    quiet_.progress = nullptr;
  }

  JointResult run() {
    note(control_.finishes([&] { search(); }));
    choose(); // the best result tried so far
    return std::move(result_);
  }

private:
  bool interrupted() const { return control_.interrupted(); }

  /// Evaluates the baselines, which no limit ends, then the plans of optimise_fusion(), so the
  /// result is no worse than its result in equal time. If a budget requires one, a plan within the
  /// budget is found first.
  void search() {
    control_.begin([&] { base(); });
    if (result_.budget_bytes) // the budget may be below the memory of every way
      note(control_.finishes([&] { set_bound(); }));
    const bool is_needed = archive_.best(budget()) == nullptr;
    if (is_needed)
      note(control_.finishes([&] { fit_budget(); }));
    control_.begin([&] { first_fused(); });
    note(control_.finishes([&] { groups_alone(); }));
    if (!result_.budget_bytes)
      set_bound();
    const StopScope scope(control_.stop_request());
    if (!is_needed)
      try_each(archive_, ways_.other_orders(ways_.base()));
    for (const Tried& first : first_)
      try_each(archive_, ways_.other_orders(first.way));
    plan(ways_.base(), "");
    plan_for_budget();
    cores_alone();
    for (std::int64_t round = 1; round < options_.rounds && !interrupted(); ++round)
      plan(JointWay(archive_.best(JointArchive::kAnyMemory)->way),
           fmt::format(", round {}", round + 1));
    refine();
  }

  void fit_budget() {
    const StopScope scope(control_.stop_request());
    try_each(archive_, ways_.other_orders(ways_.base()));
    if (archive_.best(budget()) == nullptr)
      plan_for_budget();
  }

  /// Records the end of one part of the search; `is_whole`: it ran to completion.
  void note(bool is_whole) { ended_early_ = ended_early_ || !is_whole; }

  /// Evaluates the base way, to which percentages of the budget refer.
  void base() {
    const StepFigures figures = ways_.model(ways_.base()).figures;
    archive_.add(ways_.base(), figures);
    if (options_.budget)
      result_.budget_bytes = options_.budget(figures.peak_memory_bytes);
    tell();
  }

  /// Sets the lower bound. With recomputation and any halo, every operator runs at least once,
  /// every operand without producer is read and every result is written.
  void set_bound() {
    const StopScope scope(control_.first_plan_request());
    StepBoundOptions options;
    options.made_once = options.kept = false;
    const TilePlanner planner(step_, chip_, ways_.tiling_of(ways_.base()));
    for (std::size_t i = 0; i < step_.graph.operators().size(); ++i)
      options.cores.push_back(planner.cores(OpId(i)));
    const StepBounds bounds = step_bounds(step_, chip_, options);
    result_.found.bound = bounds.least(options_.objective);
    min_bytes_ = bounds.peak_memory_bytes;
    if (result_.budget_bytes && *result_.budget_bytes < min_bytes_)
      throw InfeasibleError(
          fmt::format("no plan of the step fits into {}: in every plan, {} live at some moment",
                      both_bytes(*result_.budget_bytes), both_bytes(min_bytes_)));
  }

  /// Fused ways with which optimise_fusion() begins.
  void first_fused() {
    StepOptions options = ways_.fused_options(ways_.base());
    options.schedule.jobs = control_.jobs;
    for (const StepChoice& chosen : first_ways(step_, chip_, options, options_.objective, costs_,
                                               [&](const SearchProgress&) { tell(); })) {
      first_.push_back({ways_.fused(ways_.base(), chosen), chosen.figures});
      archive_.add(first_.back().way, chosen.figures);
      tell();
    }
  }

  /// Tries a way layer by layer, and fused by choose_step() for the way's order. With `idle_cores`,
  /// some cores may be idle.
  void try_step(JointArchive& archive, const JointWay& way, bool idle_cores) {
    try_each(archive, ways_.all_orders(way));
    if (interrupted())
      return;
    StepOptions options = ways_.fused_options(way);
    if (!idle_cores)
      options.tiling.idle.assign(chip_.cores.size(), false);
    try {
      const StepChoice chosen =
          choose_step(*way.step, chip_, options, {StepMode::fused, options_.objective}, costs_);
      try_each(archive, ways_.all_orders(ways_.fused(way, chosen)));
    } catch (const InfeasibleError&) { // no fused plan can be scheduled
    }
  }

  /// Models all the ways; omits those that cannot be scheduled or exceed the time limit.
  void try_each(JointArchive& archive, const std::vector<JointWay>& ways) {
    std::vector<std::optional<StepFigures>> trials(ways.size());
    parallel_for(ways.size(), control_.jobs, [&](std::size_t i) {
      if (interrupted())
        return;
      control_.finishes([&] {
        try {
          trials[i] = ways_.model(ways[i]).figures;
        } catch (const InfeasibleError&) { // the way does not fit the chip
          trials[i].reset();
        }
      });
    });
    for (std::size_t i = 0; i < ways.size(); ++i) {
      if (trials[i])
        archive.add(ways[i], *trials[i]);
    }
    tell();
  }

  void tell() const {
    SearchProgress state{"joint", evaluations(), 0, {}, result_.found.bound};
    state.best = std::numeric_limits<double>::infinity();
    for (const JointArchive* archive : {&archive_, &for_budget_})
      if (const Tried* best = archive->best(budget()))
        state.best = std::min(state.best, archive->value(*best));
    if (std::isinf(state.best))
      state.best = SearchProgress{}.best;
    control_.tell(state);
  }
  std::int64_t evaluations() const {
    return static_cast<std::int64_t>(archive_.tried().size() + for_budget_.tried().size()) +
           searched_;
  }
  std::int64_t budget() const { return result_.budget_bytes.value_or(JointArchive::kAnyMemory); }

  /// Finds recomputation plans with the costs of a way's schedule.
  void plan(const JointWay& costed, std::string_view suffix) {
    if (interrupted() || options_.levels == 0)
      return;
    const CheckpointSpace space = checkpoint_space(step_, ways_.operator_costs(costed));
    note(plan_ladder(space, {options_.levels, options_.plan_effort}, quiet_.share(3),
                     [&](const RecomputePlan& plan) {
                       const bool is_new = seen_.insert(runs_of(plan)).second;
                       if (const auto way = is_new ? ways_.recomputed(plan, suffix) : std::nullopt)
                         try_step(archive_, *way, false);
                     }));
  }

  /// Adds the plan that the checkpoint search alone finds for the budget.
  void plan_for_budget() {
    if (interrupted() || options_.levels == 0 || !result_.budget_bytes || has_budget_plan_)
      return;
    has_budget_plan_ = true;
    JointWay in_order = ways_.base();
    in_order.priority = Priority::order; // plans are orders
    const CheckpointSpace space = checkpoint_space(step_, ways_.operator_costs(in_order));
    const std::int64_t budget = *result_.budget_bytes;
    const RecomputeResult found =
        checkpoint_front(space, {&budget, 1}, options_.checkpointing, quiet_.share(4)).front();
    note(!found.interrupted);
    if (!found.plan)
      return;
    if (const auto way = ways_.recomputed(*found.plan, ", for the budget"))
      try_step(for_budget_, *way, true);
  }

  /// Runs the group search and the core search alone: the group search in all the available time,
  /// the core search from the best baseline.
  void groups_alone() {
    if (options_.fusion.evaluations == 0 || interrupted())
      return;
    const StopScope scope(control_.stop_request());
    std::vector<FusionPlan> starts;
    for (const Tried& first : first_)
      starts.push_back(*first.way.fusion);
    groups(ways_.base(), std::move(starts), JointArchive::kAnyMemory, options_.fusion, quiet_);
  }
  void cores_alone() {
    if (options_.allocation_evaluations == 0 || interrupted())
      return;
    Tried best = archive_.tried().front(); // the base
    for (const Tried& first : first_)
      best = archive_.value(first) < archive_.value(best) ? first : best;
    cores(best.way, JointArchive::kAnyMemory, options_.allocation_evaluations, quiet_.share(2));
  }

  /// Searches groups, then cores, at falling amounts of memory, starting from the best ways with
  /// and without recomputation.
  void refine() {
    const std::int64_t most = archive_.best(JointArchive::kAnyMemory)->figures.peak_memory_bytes;
    const std::int64_t least = archive_.least()->figures.peak_memory_bytes;
    std::vector<std::int64_t> limits{JointArchive::kAnyMemory};
    for (std::int64_t i = 1; i <= options_.levels; ++i)
      limits.push_back(most - (most - least) * i / options_.levels);
    limits.erase(std::unique(limits.begin(), limits.end()), limits.end());
    const auto searches = static_cast<std::int64_t>(2 * limits.size());
    FusionOptions fusion = options_.fusion;
    fusion.tiles = 0;
    fusion.evaluations = (fusion.evaluations + searches - 1) / searches;
    fusion.group_evaluations = std::min(fusion.group_evaluations, 15 * fusion.evaluations);
    const std::int64_t allocations =
        (options_.allocation_evaluations + 2 * searches - 1) / (2 * searches);
    std::int64_t left = searches;
    for (const std::int64_t limit : limits) {
      for (const auto& allowed : {once, recomputed}) {
        const SearchControl share = quiet_.share(static_cast<int>(left--));
        refine(limit, allowed, fusion, allocations, share);
        tell();
      }
    }
  }

  void refine(std::int64_t limit, const JointArchive::Allowed& allowed, const FusionOptions& fusion,
              std::int64_t allocations, const SearchControl& control) {
    const Tried* from = archive_.best(limit, allowed);
    if (from == nullptr || interrupted())
      return;
    const bool done = limit == JointArchive::kAnyMemory && from->way.once();
    if (fusion.evaluations > 0 && !done) {
      std::vector<FusionPlan> starts;
      if (from->way.fusion)
        starts.push_back(*from->way.fusion);
      groups(JointWay(from->way), std::move(starts), limit, fusion, control.share(2));
    }
    from = archive_.best(limit, allowed);
    if (allocations > 0 && !interrupted())
      cores(JointWay(from->way), limit, allocations, control);
  }

  /// Runs a search of groups or cores, whose time may end and which may find nothing in its limit.
  template <class Part>
  void run_part(const Part& part) {
    try {
      part();
    } catch (const InfeasibleError&) { // nothing fits the limit
    } catch (const Stopped&) {         // the time for this part is over
      if (interrupted())
        throw;
      note(false);
    }
    tell();
  }

  static void say(std::string_view what, std::string& name) {
    if (name.find(what) == name.npos)
      name += what;
  }

  /// Adds the front of a group search on the way's step that starts from these plans.
  void groups(const JointWay& way, std::vector<FusionPlan> starts, std::int64_t limit,
              FusionOptions options, const SearchControl& control) {
    options.objective = options_.objective;
    TilingOptions tiling = options_.tiling;
    tiling.stacks.reset();
    tiling.slices.clear();
    FusionProblem problem{*way.step, chip_, costs_, tiling, ways_.schedule_of(way)};
    problem.max_live_bytes = limit == JointArchive::kAnyMemory ? 0 : limit;
    problem.starts = std::move(starts);
    run_part([&] {
      const FusionResult found = optimise_fusion(problem, options, control);
      note(!found.certificate.interrupted);
      searched_ += found.evaluations;
      for (const FusionResult::Point& point : found.front) {
        if (point.plan.stacks.empty())
          continue; // the layer-by-layer plan
        JointWay made = way;
        say(made.name == "base" ? ", fused, groups searched" : ", groups searched", made.name);
        made.mode = TilingMode::fused;
        made.fusion = point.plan;
        made.allocation = nullptr;
        archive_.add(std::move(made), point.figures);
      }
    });
  }

  /// Adds the front of a core search on the way's step.
  void cores(const JointWay& way, std::int64_t limit, std::int64_t evaluations,
             const SearchControl& control) {
    run_part([&] {
      AllocationEvaluator evaluator(*way.step, chip_, ways_.tiling_of(way), ways_.schedule_of(way));
      AllocationSearchOptions search;
      search.objective = options_.objective;
      search.evaluations = static_cast<std::size_t>(evaluations);
      search.max_live_bytes = limit;
      AllocationResult found = search_allocation(evaluator, search, control);
      note(!found.certificate.interrupted);
      searched_ += static_cast<std::int64_t>(found.evaluations);
      found.front.push_back(found.best);
      for (const AllocationPoint& point : found.front) {
        JointWay made = way;
        say(", cores searched", made.name);
        if (made.fusion) // the evaluator's own fusion plan
          made.fusion = fusion_of(*way.step, chip_, evaluator.tiling());
        made.allocation = std::make_shared<const CoreAllocation>(evaluator.allocation(point.plan));
        archive_.add(std::move(made), point.figures);
      }
    });
  }

  void choose() {
    result_.found.interrupted = ended_early_ || interrupted();
    for (const Tried& tried : for_budget_.tried())
      archive_.add(tried.way, tried.figures);
    for_budget_ = JointArchive(options_.objective);
    const Tried* best = archive_.best(budget());
    if (best == nullptr)
      nothing_found();
    const auto is_unfused = [](const JointWay& way) {
      return way.mode == TilingMode::layer_by_layer;
    };
    const Tried* fused = archive_.best(budget(), once);
    if (fused == nullptr)
      fused = archive_.best(JointArchive::kAnyMemory, once);
    const Tried* checkpointed = archive_.best(budget(), is_unfused);
    if (checkpointed == nullptr)
      checkpointed = archive_.least(is_unfused);
    result_.base = ways_.point(archive_.tried().front());
    result_.fused = ways_.point(*fused);
    result_.checkpointed = ways_.point(*checkpointed);
    result_.both = ways_.point(*best);
    for (const Tried& tried : archive_.tried())
      result_.trials.push_back({tried.way.name, tried.figures});
    result_.evaluations = evaluations();
    result_.found.best = archive_.value(*best);
    result_.found.start = archive_.value(archive_.tried().front()); // the base way
    for (const Tried& first : first_)
      result_.found.start = std::min(result_.found.start, archive_.value(first));
  }

  [[noreturn]] void nothing_found() const {
    const std::string when = interrupted() ? " before the search was ended" : "";
    if (control_.stop != nullptr && control_.stop->load())
      throw control_.stopped("before a plan within the budget was found");
    const Tried* least = archive_.least();
    if (least == nullptr)
      throw InfeasibleError("no plan of the step was scheduled" + when);
    const std::int64_t peak = least->figures.peak_memory_bytes;
    throw InfeasibleError(fmt::format("no plan of the step within {} was found{}: the best of {} "
                                      "candidates has a peak of {}, {} too "
                                      "many ({}); in every plan, {} live at some moment",
                                      both_bytes(budget()), when, evaluations(), both_bytes(peak),
                                      both_bytes(peak - budget()), least->way.name,
                                      both_bytes(min_bytes_)));
  }

  const Chip& chip_;
  const JointOptions& options_;
  const SearchControl& control_;
  SearchControl quiet_; ///< control for the parts of the search
  CoreCostCache costs_;
  JointWays ways_;
  const TrainingGraph& step_;
  JointArchive archive_;             ///< base way first; independent of the budget
  JointArchive for_budget_;          ///< depends on the budget; not used as a start
  std::vector<Tried> first_;         ///< results of first_ways()
  bool ended_early_ = false;         ///< whether a part of the search ended early
  bool has_budget_plan_ = false;     ///< whether plan_for_budget() has run
  std::set<std::vector<OpId>> seen_; ///< known recomputation plans
  std::int64_t searched_ = 0;        ///< schedules evaluated by the parts
  std::int64_t min_bytes_ = 0;       ///< minimum live bytes of any way
  JointResult result_;
};

} // namespace

JointResult optimise_jointly(const TrainingGraph& step, const Chip& chip,
                             const JointOptions& options, const SearchControl& control) {
  return JointSearch(step, chip, options, control).run();
}

} // namespace monet

// The joint search. It starts from baselines and recomputation plans, runs the group and core
// searches alone, then both for the best results at falling amounts of memory. The memory budget
// finally selects the result.
#include "base/shared/parallel.hpp"
#include "optimise/joint/archive.hpp"
#include "optimise/joint/plans.hpp"
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
#include <map>
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
        step_(std::make_shared<const TrainingGraph>(step)), archive_(options.objective),
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
      try_each(archive_, other_orders(base_way()));
    for (const Tried& first : first_)
      try_each(archive_, other_orders(first.way));
    plan(base_way(), "");
    plan_for_budget();
    cores_alone();
    for (std::int64_t round = 1; round < options_.rounds && !interrupted(); ++round)
      plan(JointWay(archive_.best(JointArchive::kAnyMemory)->way),
           fmt::format(", round {}", round + 1));
    refine();
  }

  void fit_budget() {
    const StopScope scope(control_.stop_request());
    try_each(archive_, other_orders(base_way()));
    if (archive_.best(budget()) == nullptr)
      plan_for_budget();
  }

  /// Records the end of one part of the search; `is_whole`: it ran to completion.
  void note(bool is_whole) { ended_early_ = ended_early_ || !is_whole; }

  JointWay base_way() const {
    JointWay way;
    way.name = "base";
    way.step = step_;
    way.priority = options_.schedule.priority;
    return way;
  }

  /// Evaluates the base way, to which percentages of the budget refer.
  void base() {
    const StepFigures figures = model(base_way()).figures;
    archive_.add(base_way(), figures);
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
    const TilePlanner planner(*step_, chip_, tiling_of(base_way()));
    for (std::size_t i = 0; i < step_->graph.operators().size(); ++i)
      options.cores.push_back(planner.cores(OpId(i)));
    const StepBounds bounds = step_bounds(*step_, chip_, options);
    result_.found.bound = bounds.least(options_.objective);
    min_bytes_ = bounds.peak_memory_bytes;
    if (result_.budget_bytes && *result_.budget_bytes < min_bytes_)
      throw InfeasibleError(fmt::format(
          "no plan of the step fits into {} bytes: in every plan, {} bytes live at some moment",
          *result_.budget_bytes, min_bytes_));
  }

  TilingOptions tiling_of(const JointWay& way) const {
    TilingOptions tiling = options_.tiling;
    tiling.mode = way.mode;
    if (way.mode == TilingMode::layer_by_layer || !way.once()) {
      tiling.stacks.reset(); // given stacks refer to the original step
      tiling.slices.clear();
      tiling.idle.clear();
    }
    if (way.fusion)
      tiling = tiling.with(*way.fusion);
    tiling.allocation = way.allocation.get();
    return tiling;
  }
  ScheduleOptions schedule_of(const JointWay& way) const {
    ScheduleOptions schedule = options_.schedule;
    schedule.priority = way.priority;
    return schedule;
  }
  ModelledStep model(const JointWay& way) {
    return model_step(*way.step, chip_, {tiling_of(way), schedule_of(way), {}}, {costs_});
  }

  /// The way with the fusion that the choice selects.
  JointWay fused(JointWay way, const StepChoice& chosen) {
    way.name = way.name == "base" ? "fused" : way.name + ", fused";
    if (std::ranges::find(chosen.tiling.idle, true) != chosen.tiling.idle.end())
      way.name += ", cores unused";
    way.mode = TilingMode::fused;
    way.fusion = fusion_of(*way.step, chip_, chosen.tiling);
    return way;
  }

  StepOptions fused_options(const JointWay& way) const {
    StepOptions options{tiling_of(way), schedule_of(way), {}};
    options.tiling.mode = TilingMode::fused;
    return options;
  }

  /// Fused ways with which optimise_fusion() begins.
  void first_fused() {
    StepOptions options = fused_options(base_way());
    options.schedule.jobs = control_.jobs;
    for (const StepChoice& chosen : first_ways(*step_, chip_, options, options_.objective, costs_,
                                               [&](const SearchProgress&) { tell(); })) {
      first_.push_back({fused(base_way(), chosen), chosen.figures});
      archive_.add(first_.back().way, chosen.figures);
      tell();
    }
  }

  /// The way in other operator orders. Running work as early as possible makes tensors long before
  /// their readers; other orders can reduce live memory.
  std::vector<JointWay> other_orders(const JointWay& way) const {
    std::vector<JointWay> others;
    for (const auto& [order, name] :
         {std::pair(Priority::order, "order"), std::pair(Priority::memory, "memory"),
          std::pair(Priority::latency, "latency")}) {
      if (order == way.priority)
        continue;
      JointWay& other = others.emplace_back(way);
      other.priority = order;
      other.name += fmt::format(", priority {}", name);
    }
    return others;
  }
  std::vector<JointWay> all_orders(const JointWay& way) const {
    std::vector<JointWay> all = other_orders(way);
    all.insert(all.begin(), way);
    return all;
  }

  /// Tries a way layer by layer, and fused by choose_step() for the way's order. With `idle_cores`,
  /// some cores may be idle.
  void try_step(JointArchive& archive, const JointWay& way, bool idle_cores) {
    try_each(archive, all_orders(way));
    if (interrupted())
      return;
    StepOptions options = fused_options(way);
    if (!idle_cores)
      options.tiling.idle.assign(chip_.cores.size(), false);
    try {
      const StepChoice chosen =
          choose_step(*way.step, chip_, options, {StepMode::fused, options_.objective}, costs_);
      try_each(archive, all_orders(fused(way, chosen)));
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
          trials[i] = model(ways[i]).figures;
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

  /// Way that runs the plan in its order; nothing if the plan has no recomputation.
  std::optional<JointWay> way_of(const RecomputePlan& plan, std::string_view suffix) {
    JointWay way;
    way.runs = runs_of(plan);
    const std::size_t again = way.runs.size() - step_->graph.operators().size();
    if (again == 0)
      return std::nullopt;
    way.name = fmt::format("{} recomputed{}", again, suffix);
    if (const int number = ++names_[way.name]; number > 1)
      way.name += fmt::format(" ({})", number);
    way.step = std::make_shared<const TrainingGraph>(with_recomputation(*step_, way.runs));
    way.priority = Priority::order;
    return way;
  }

  const std::vector<std::int64_t>& used(const OperatorCosts& costs) const {
    return options_.objective == Objective::latency ? costs.cycles : costs.energy;
  }

  /// Finds recomputation plans with the costs of a way's schedule.
  void plan(const JointWay& costed, std::string_view suffix) {
    if (interrupted() || options_.levels == 0)
      return;
    const CheckpointSpace space = checkpoint_space(*step_, used(costs_of(costed)));
    note(plan_ladder(space, {options_.levels, options_.plan_effort}, quiet_.share(3),
                     [&](const RecomputePlan& plan) {
                       const bool is_new = seen_.insert(runs_of(plan)).second;
                       if (const auto way = is_new ? way_of(plan, suffix) : std::nullopt)
                         try_step(archive_, *way, false);
                     }));
  }

  /// Adds the plan that the checkpoint search alone finds for the budget.
  void plan_for_budget() {
    if (interrupted() || options_.levels == 0 || !result_.budget_bytes || has_budget_plan_)
      return;
    has_budget_plan_ = true;
    JointWay in_order = base_way();
    in_order.priority = Priority::order; // plans are orders
    const CheckpointSpace space = checkpoint_space(*step_, used(costs_of(in_order)));
    const std::int64_t budget = *result_.budget_bytes;
    const RecomputeResult found =
        checkpoint_front(space, {&budget, 1}, options_.checkpointing, quiet_.share(4)).front();
    note(!found.interrupted);
    if (!found.plan)
      return;
    if (const auto way = way_of(*found.plan, ", for the budget"))
      try_step(for_budget_, *way, true);
  }

  /// Costs of the given step's operators: those of each first run, which keeps its name.
  OperatorCosts costs_of(const JointWay& way) {
    OperatorCosts all = operator_costs(model(way).timeline, *way.step);
    if (way.once())
      return all;
    std::map<std::string_view, std::size_t> place;
    for (std::size_t i = 0; i < all.cycles.size(); ++i)
      place[way.step->graph.operators()[i].name] = i;
    OperatorCosts first;
    for (const Operator& op : step_->graph.operators()) {
      const std::size_t i = place.at(op.name);
      first.cycles.push_back(all.cycles[i]);
      first.energy.push_back(all.energy[i]);
    }
    return first;
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
    groups(base_way(), std::move(starts), JointArchive::kAnyMemory, options_.fusion, quiet_);
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
    FusionProblem problem{*way.step, chip_, costs_, tiling, schedule_of(way)};
    problem.max_live_bytes = limit == JointArchive::kAnyMemory ? 0 : limit;
    problem.starts = std::move(starts);
    try {
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
    } catch (const InfeasibleError&) { // no groups fit the limit
    } catch (const Stopped&) {         // the time for this part is over
      if (interrupted())
        throw;
      note(false);
    }
    tell();
  }

  /// Adds the front of a core search on the way's step.
  void cores(const JointWay& way, std::int64_t limit, std::int64_t evaluations,
             const SearchControl& control) {
    try {
      AllocationEvaluator evaluator(*way.step, chip_, tiling_of(way), schedule_of(way));
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
    } catch (const InfeasibleError&) { // no allocation fits the limit
    } catch (const Stopped&) {         // the time for this part is over
      if (interrupted())
        throw;
      note(false);
    }
    tell();
  }

  JointPoint point_of(const Tried& tried) const {
    JointPoint point;
    point.name = tried.way.name;
    point.step = tried.way.step;
    point.runs = tried.way.runs;
    point.allocation = tried.way.allocation;
    point.tiling = tiling_of(tried.way);
    point.priority = tried.way.priority;
    point.figures = tried.figures;
    return point;
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
    result_.base = point_of(archive_.tried().front());
    result_.fused = point_of(*fused);
    result_.checkpointed = point_of(*checkpointed);
    result_.both = point_of(*best);
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
    throw InfeasibleError(fmt::format(
        "no plan of the step within {} bytes was found{}: the best of {} candidates has a peak of "
        "{}, {} too many ({}); in every plan, {} bytes live at some moment",
        budget(), when, evaluations(), peak, peak - budget(), least->way.name, min_bytes_));
  }

  const Chip& chip_;
  const JointOptions& options_;
  const SearchControl& control_;
  SearchControl quiet_; ///< control for the parts of the search
  std::shared_ptr<const TrainingGraph> step_;
  CoreCostCache costs_;
  JointArchive archive_;             ///< base way first; independent of the budget
  JointArchive for_budget_;          ///< depends on the budget; not used as a start
  std::vector<Tried> first_;         ///< results of first_ways()
  bool ended_early_ = false;         ///< whether a part of the search ended early
  bool has_budget_plan_ = false;     ///< whether plan_for_budget() has run
  std::set<std::vector<OpId>> seen_; ///< known recomputation plans
  std::map<std::string, int> names_; ///< number of uses of each name
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

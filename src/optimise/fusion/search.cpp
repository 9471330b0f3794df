// optimise_fusion(): evaluates known plans, then improves the best of them with FusionSearch.
#include "optimise/fusion/candidates.hpp"
#include "optimise/fusion/improve.hpp"
#include "optimise/fusion/moves.hpp"
#include "optimise/fusion/original.hpp"
#include "optimise/shared/searches.hpp"

#include "monet/base/errors.hpp"
#include "monet/base/stop.hpp"
#include "monet/optimise/fusion.hpp"
#include "monet/optimise/step_mode.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <memory>
#include <utility>

namespace monet {

const SearchInfo kFusionSearch{
    .name = "fusion",
    .decides = "groups of operators and their slices",
    .options = "FusionOptions",
    .exact = "the space is small",
    .bound = "every fusion and allocation of the step",
    .evaluation = "one schedule of a group, or of the step",
    .method = "covers of groups by dynamic programming, then changes of the best plan",
};

namespace {

class FullSearch : FusionSearch {
public:
  /// `tiling`: the tiling of first_ways().
  FullSearch(const FusionProblem& problem, const TilingOptions& tiling,
             const FusionOptions& options, const SearchControl& control)
      : FusionSearch(problem, options, control), tiling_(tiling) {}

  FusionResult run() {
    const bool is_whole =
        run_search({[&] { begin(); }, [&] { bound(); }, [&] { search(); }}, control_);
    finish(is_whole); // returns the best plan so far
    return std::move(result_);
  }

private:
  void begin() {
    layer_by_layer();
    if (options_.method == FusionMethod::cost || options_.method == FusionMethod::automatic)
      start();
  }

  void search() {
    if (options_.method == FusionMethod::cost)
      closed_forms();
    begin_counting();
    for (const FusionMethod method : {FusionMethod::fewest_groups, FusionMethod::min_traffic}) {
      const bool asked = options_.tries_original || options_.method == method;
      if (asked && wanted(method))
        original(method);
    }
    if (options_.method == FusionMethod::cost)
      search_by_cost();
  }

  bool wanted(FusionMethod method) const {
    return (options_.method == FusionMethod::cost || options_.method == method) && !stopped();
  }

  /// Evaluates the baseline plans. No limit ends this part, so the result is never worse than
  /// these.
  void start() {
    FusionAnswer best{FusionMethod::automatic, {}, std::nullopt, {}};
    if (problem_.starts) {
      for (const FusionPlan& plan : *problem_.starts)
        consider(best, plan, std::numeric_limits<std::size_t>::max());
    } else {
      TilingOptions fused = tiling_;
      fused.mode = TilingMode::fused;
      ScheduleOptions schedule = problem_.schedule;
      schedule.jobs = control_.jobs;
      for (const StepChoice& way :
           first_ways(problem_.step, problem_.chip, {fused, schedule, {}}, options_.objective,
                      problem_.costs, control_.progress))
        start_with(way, best);
      if (!best.figures && best.why_not.empty())
        best.why_not = "no fused plan can be scheduled";
    }
    if (best.figures)
      max_tiles_ = std::max(max_tiles_, static_cast<std::size_t>(best.figures->tiles));
    compare(std::move(best), "fusion: known plans");
  }

  void start_with(const StepChoice& way, FusionAnswer& best) {
    count(way.evaluations);
    if (!evaluator_.fits(way.figures)) {
      best.why_not = "more bytes alive at once than the limit";
      return;
    }
    FusionPlan plan = fusion_of(problem_.step, problem_.chip, way.tiling);
    StepFigures figures = way.figures;
    if (!way.tiling.stacks) { // a mapping may slice explicit stacks differently from automatic ones
      try {
        figures = evaluator_.evaluate_or_throw(plan, std::numeric_limits<std::size_t>::max());
      } catch (const InfeasibleError& error) {
        best.why_not = error.what();
        return;
      }
    }
    offer(best.method, plan, figures);
    const Objective objective = options_.objective;
    if (!best.figures || figures.value(objective) < best.figures->value(objective)) {
      best.figures = figures;
      best.plan = std::move(plan);
    }
  }

  /// Evaluates the plans by closed forms on all cores. The plan of choose_step() is no worse, but
  /// these may need less memory and extend the front.
  void closed_forms() {
    TilingOptions tiling = problem_.tiling;
    tiling.stacks.reset();
    tiling.slices.clear();
    std::vector<FusionPlan> plans =
        estimated_plans(FusionCovers(problem_.step, tiling.halo), problem_.step, problem_.chip,
                        tiling, problem_.schedule, problem_.costs)
            .plans;
    plans.push_back(automatic_fusion(problem_.step, problem_.chip, tiling));
    FusionAnswer best{FusionMethod::cost, {}, std::nullopt, {}};
    for (FusionPlan& plan : plans) {
      if (!stopped())
        consider(best, std::move(plan));
    }
  }

  void original(FusionMethod method) {
    const bool fewest = method == FusionMethod::fewest_groups;
    OriginalPlan found =
        original_fusion(problem_.step.graph, problem_.chip, cores_, order_, fewest, control_);
    if (fewest)
      result_.kept = std::move(found.kept);
    TilingOptions tiling = problem_.tiling; // with explicit slices
    tiling.stacks = found.plan.stacks;
    tiling.slices.clear();
    FusionAnswer answer{method, automatic_fusion(problem_.step, problem_.chip, tiling), {}, {}};
    consider(answer, FusionPlan(answer.plan));
    compare(std::move(answer), "fusion: known plans");
  }

  void finish(bool is_whole) {
    require_plan();
    if (options_.method != FusionMethod::cost)
      take_asked();
    certify(is_whole);
    if (!result_.certificate.interrupted)
      result_.certificate.interrupted = !explain_ends();
  }

  /// Explains why groups end; returns false if there was no time for it.
  bool explain_ends() {
    return control_.finishes([&] {
      const StopScope scope(control_.stop_request());
      if (segments_ == nullptr)
        segments_ = std::make_unique<FusionSegments>(problem_, evaluator_, options_, order_);
      result_.ends = why_they_end(problem_, *segments_, order_, result_.plan, weights_, control_);
    });
  }

  /// Keeps only the answer of the requested method.
  void take_asked() {
    for (const FusionAnswer& answer : result_.compared) {
      if (answer.method != options_.method)
        continue;
      if (!answer.figures)
        throw InfeasibleError(answer.why_not);
      result_.method = answer.method;
      result_.plan = answer.plan;
      result_.figures = *answer.figures;
      best_value_ = answer.figures->value(options_.objective);
    }
  }

  const TilingOptions& tiling_;
};

} // namespace

std::string_view name_of(FusionMethod method) {
  constexpr std::array<std::string_view, 5> kNames{"cost", "fewest-groups", "least-traffic", "auto",
                                                   "none"};
  return kNames.at(static_cast<std::size_t>(method));
}

void FusionOptions::limit_effort() {
  tiles = 0;
  group_evaluations = std::min<std::int64_t>(20 * evaluations, 1'000'000);
}

FusionResult optimise_fusion(const FusionProblem& problem, const FusionOptions& options,
                             const SearchControl& control) {
  FusionProblem all_cores = problem;
  all_cores.tiling.idle.clear();
  FusionResult found = FullSearch(all_cores, problem.tiling, options, control).run();
  const auto use_all_cores = [&](FusionPlan& plan) { // including cores that the problem leaves idle
    if (plan.idle.empty())
      plan.idle.assign(problem.tiling.idle.size(), false);
  };
  use_all_cores(found.plan);
  for (FusionResult::Point& point : found.front)
    use_all_cores(point.plan);
  for (FusionAnswer& answer : found.compared)
    use_all_cores(answer.plan);
  return found;
}

} // namespace monet

// optimise_fusion(): known plans, then the search from the best of them.
#include "optimise/fusion/candidates.hpp"
#include "optimise/fusion/improve.hpp"
#include "optimise/fusion/moves.hpp"
#include "optimise/fusion/original.hpp"

#include "monet/base/errors.hpp"
#include "monet/base/stop.hpp"
#include "monet/optimise/fusion.hpp"
#include "monet/tiling/allocation.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace monet {

namespace {

/// Searches with fewer schedules do not make the brief one.
constexpr std::int64_t kSpared = 100;

class FullSearch : FusionSearch {
public:
  FullSearch(const FusionProblem& problem, const FusionOptions& options,
             const SearchControl& control)
      : FusionSearch(problem, options, control) {}

  FusionResult run() {
    control_.finishes([&] { search(); });
    finish(); // with the best so far
    return std::move(result_);
  }

private:
  void search() {
    begin();
    const StopScope scope(control_.stop_request());
    if (problem_.tiling.stacks && options_.method == FusionMethod::cost && !stopped())
      try_given();
    if (wanted(FusionMethod::automatic))
      automatic();
    for (const FusionMethod method : {FusionMethod::fewest_groups, FusionMethod::least_traffic}) {
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

  /// What choose_step() chooses from.
  void automatic() {
    TilingOptions tiling = problem_.tiling;
    tiling.stacks.reset();
    tiling.slices.clear();
    std::vector<FusionPlan> plans =
        estimated_plans(FusionCovers(problem_.step, tiling.halo), problem_.step, problem_.chip,
                        tiling, problem_.schedule, problem_.costs)
            .plans;
    FusionAnswer best{FusionMethod::automatic, {}, std::nullopt, {}};
    for (FusionPlan& plan : plans)
      consider(best, std::move(plan));
    const bool search = options_.evaluations >= kSpared;
    TilingOptions fused = tiling;
    fused.mode = TilingMode::fused;
    if (auto turns = best_in_turns(problem_.step, problem_.chip, {fused, problem_.schedule},
                                   options_.objective, problem_.costs, search))
      consider(best, {std::move(*turns->stacks), std::move(turns->slices)});
    consider(best, automatic_fusion(problem_.step, problem_.chip, tiling));
    if (best.figures && search)
      control_.finishes([&] { briefly(best); });
    compare(std::move(best), "fusion: known plans");
  }

  /// As choose_step() goes on from there.
  void briefly(FusionAnswer& best) {
    FusionProblem problem = problem_;
    problem.tiling = problem_.tiling.with(best.plan);
    SearchControl control = control_;
    control.progress = {};
    std::optional<FusionResult> found =
        search_briefly(problem, options_.objective, *best.figures, control);
    if (!found)
      return;
    result_.evaluations += found->evaluations;
    result_.group_evaluations += found->group_evaluations;
    for (const double value : found->trace)
      result_.trace.push_back(std::min(value, best_value_));
    for (const FusionResult::Point& point : found->front)
      add_to_front(point.plan, point.figures);
    if (found->method == FusionMethod::none ||
        found->figures.value(options_.objective) >= best.figures->value(options_.objective))
      return;
    offer(best.method, found->plan, found->figures);
    best.figures = found->figures;
    best.plan = std::move(found->plan);
  }

  void original(FusionMethod method) {
    const bool fewest = method == FusionMethod::fewest_groups;
    OriginalPlan found =
        original_fusion(problem_.step.graph, problem_.chip, cores_, order_, fewest, control_);
    if (fewest)
      result_.kept = std::move(found.kept);
    TilingOptions tiling = problem_.tiling; // its slices said outright
    tiling.stacks = found.plan.stacks;
    tiling.slices.clear();
    FusionAnswer answer{method, automatic_fusion(problem_.step, problem_.chip, tiling), {}, {}};
    consider(answer, FusionPlan(answer.plan));
    compare(std::move(answer), "fusion: known plans");
  }

  void finish() {
    require_plan();
    if (options_.method != FusionMethod::cost)
      take_asked();
    certify();
    if (!result_.certificate.interrupted)
      explain_ends();
  }

  /// As far as there is time.
  void explain_ends() {
    control_.finishes([&] {
      const StopScope scope(control_.stop_request());
      if (segments_ == nullptr)
        segments_ = std::make_unique<FusionSegments>(problem_, evaluator_, options_, order_);
      result_.ends = why_they_end(problem_, *segments_, order_, result_.plan, weights_, control_);
    });
  }

  /// The answer of the one method that was asked for.
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
};

} // namespace

std::string_view name_of(FusionMethod method) {
  constexpr std::array<std::string_view, 5> kNames{"cost", "fewest-groups", "least-traffic", "auto",
                                                   "none"};
  return kNames.at(static_cast<std::size_t>(method));
}

FusionResult optimise_fusion(const FusionProblem& problem, const FusionOptions& options,
                             const SearchControl& control) {
  return FullSearch(problem, options, control).run();
}

} // namespace monet

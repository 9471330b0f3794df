// Implements FusionSearch, the evaluation and improvement loop of the fusion searches, and the
// brief search of choose_step().
#include "optimise/fusion/improve.hpp"

#include "optimise/fusion/candidates.hpp"
#include "optimise/fusion/moves.hpp"
#include "optimise/shared/step_bounds.hpp"

#include "monet/base/errors.hpp"
#include "monet/base/stop.hpp"
#include "monet/tiling/allocation.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

namespace monet {

namespace {

/// A proposed plan may have at most `kMaxTileRatio` times the tiles of the layer-by-layer plan, or
/// `kSomeTiles`, whichever is larger.
constexpr std::size_t kMaxTileRatio = 24;
constexpr std::size_t kSomeTiles = 20000;
constexpr std::size_t kBatch = 8;
/// A search makes at most `kMoreEvaluations` times the requested schedules.
constexpr std::int64_t kMoreEvaluations = 5;

} // namespace

FusionSearch::FusionSearch(const FusionProblem& problem, const FusionOptions& options,
                           const SearchControl& control)
    : problem_(problem), options_(options), control_(control), evaluator_(problem),
      order_(problem.step.graph) {
  const TilePlanner planner(problem.step, problem.chip, problem.tiling);
  for (std::size_t i = 0; i < order_.size(); ++i)
    cores_.push_back(planner.cores(OpId(i)));
}

void FusionSearch::bound() {
  StepBoundOptions options;
  options.made_once = problem_.tiling.halo == Halo::cached && !options_.recomputed_halos;
  options.cores = cores_;
  options.max_tiles = static_cast<double>(
      std::max(kMaxTileRatio * static_cast<std::size_t>(alone_.tiles), max_tiles_));
  result_.certificate.bound =
      step_bounds(problem_.step, problem_.chip, options).least(options_.objective);
}

void FusionSearch::add_to_front(const FusionPlan& plan, const StepFigures& figures) {
  const auto as_good = [&](const StepFigures& a, const StepFigures& b) {
    return a.value(options_.objective) <= b.value(options_.objective) &&
           a.peak_memory_bytes <= b.peak_memory_bytes;
  };
  std::vector<FusionResult::Point>& front = result_.front;
  if (std::ranges::any_of(front, [&](const auto& at) { return as_good(at.figures, figures); }))
    return;
  std::erase_if(front, [&](const auto& at) { return as_good(figures, at.figures); });
  const auto next =
      std::ranges::upper_bound(front, figures.value(options_.objective), {}, [&](const auto& at) {
        return at.figures.value(options_.objective);
      });
  front.insert(next, {plan, figures});
}

void FusionSearch::offer(FusionMethod method, const FusionPlan& plan, const StepFigures& figures) {
  add_to_front(plan, figures);
  const double value = figures.value(options_.objective);
  if (!best_ || value < best_value_) {
    best_ = true;
    best_value_ = value;
    result_.method = method;
    result_.plan = plan;
    result_.figures = figures;
  }
  result_.trace.push_back(best_value_);
}

void FusionSearch::tell(std::string_view phase) const {
  control_.tell({phase, spent(), std::max({expected(), every_, spent()}),
                 best_ ? best_value_ : std::numeric_limits<double>::quiet_NaN(),
                 result_.certificate.bound});
}

void FusionSearch::layer_by_layer() {
  // The baseline as a plan: no stacks, except single operators that a mapping would slice; these
  // are not sliced.
  FusionPlan plan;
  for (std::size_t i = 0; problem_.tiling.mapping != nullptr && i < order_.size(); ++i) {
    plan.stacks.push_back({OpId(i)});
    plan.slices.emplace_back(StackSlices{});
  }
  FusionAnswer answer{FusionMethod::none, std::move(plan), std::nullopt, {}};
  ++result_.evaluations;
  try {
    alone_ = evaluator_.layer_by_layer();
    if (evaluator_.fits(alone_)) {
      answer.figures = alone_;
      offer(answer.method, answer.plan, alone_);
    } else {
      answer.why_not = "more bytes alive at once than the limit";
    }
    const std::size_t tiles = alone_.tiles;
    evaluator_.limit_tiles(std::max(kMaxTileRatio * tiles, kSomeTiles));
  } catch (const InfeasibleError& error) {
    answer.why_not = error.what();
  }
  compare(std::move(answer), "fusion: layer by layer");
}

void FusionSearch::compare(FusionAnswer answer, std::string_view phase) {
  if (!answer.figures && why_not_.empty())
    why_not_ = answer.why_not;
  const bool is_start =
      answer.method == FusionMethod::none || answer.method == FusionMethod::automatic;
  if (answer.figures && is_start)
    start_ = std::fmin(start_, answer.figures->value(options_.objective));
  result_.compared.push_back(std::move(answer));
  tell(phase);
}

void FusionSearch::count(std::int64_t evaluations) {
  result_.evaluations += evaluations;
  if (best_)
    result_.trace.insert(result_.trace.end(), static_cast<std::size_t>(evaluations), best_value_);
}

void FusionSearch::consider(FusionAnswer& best, FusionPlan plan, std::size_t max_tiles) {
  ++result_.evaluations;
  try {
    const StepFigures figures = evaluator_.evaluate_or_throw(plan, max_tiles);
    offer(best.method, plan, figures);
    if (!best.figures ||
        figures.value(options_.objective) < best.figures->value(options_.objective)) {
      best.figures = figures;
      best.plan = std::move(plan);
    }
  } catch (const InfeasibleError& error) {
    best.why_not = error.what();
  }
}

void FusionSearch::search_by_cost() {
  if (stopped() || proven())
    return;
  FusionPlans plans(problem_.step.graph, order_, options_);
  const std::int64_t every = plans.count(options_.complete_below);
  if (every <= options_.complete_below) {
    every_ = spent() + every;
    try_every(plans);
    return;
  }
  segments_ = std::make_unique<FusionSegments>(problem_, evaluator_, options_, order_);
  weights_ = weights(options_.objective);
  const std::array<FusionWeights, 2> judged{weights_, weights(Objective::dram)};
  result_.group_evaluations += segments_->evaluate(judged, control_);
  cover();
  improve();
  std::vector<KeepRate> rates = segments_->rates(weights_);
  rates.insert(rates.end(), result_.kept.begin(), result_.kept.end());
  result_.kept = std::move(rates);
}

void FusionSearch::try_every(FusionPlans& plans) {
  std::vector<FusionPlan> batch;
  const auto judge = [&] {
    try_plans(batch);
    batch.clear();
    return !stopped() && !proven();
  };
  plans.for_each([&](FusionPlan plan) {
    batch.push_back(std::move(plan));
    return batch.size() < 64 || judge();
  });
  if (!stopped() && !proven())
    judge();
  result_.complete = !stopped();
}

/// Weights for the objective, relative to the figures of the best plan, or of layer by layer if
/// there is no best plan.
FusionWeights FusionSearch::weights(Objective objective) const {
  const StepFigures& f = best_ ? result_.figures : alone_;
  const double latency = 1.0 / std::max<double>(1.0, static_cast<double>(f.latency_cycles));
  const double energy = 1.0 / std::max(1.0, f.energy_pj);
  const double dram = 1.0 / std::max<double>(1.0, static_cast<double>(f.offchip_bits));
  switch (objective) {
  case Objective::latency:
    return {latency, 0, 0};
  case Objective::energy:
    return {0, energy, 0};
  case Objective::edp:
    return {latency, energy, 0};
  case Objective::dram:
    return {0, 0, dram};
  default:
    throw InternalError("fusion cannot be searched by this objective");
  }
}

/// Tries covers of groups whose gains are measured by different weights.
void FusionSearch::cover() {
  std::vector<FusionPlan> plans{plan_of(segments_->cover(weights_))};
  for (const Objective other : kFusionObjectives) {
    FusionWeights mixed = weights(other);
    plans.push_back(plan_of(segments_->cover(mixed)));
    mixed.latency += weights_.latency;
    mixed.energy += weights_.energy;
    mixed.dram += weights_.dram;
    plans.push_back(plan_of(segments_->cover(mixed)));
  }
  const auto room = static_cast<std::size_t>(std::max<std::int64_t>(0, expected() - spent()));
  plans.resize(std::min(plans.size(), room));
  try_plans(plans);
}

/// Evaluates the plans and keeps the best. Returns their values; infinity for plans that cannot be
/// scheduled or were tried before.
std::vector<double> FusionSearch::try_plans(const std::vector<FusionPlan>& plans) {
  std::vector<FusionPlan> fresh;
  std::vector<std::size_t> place;
  for (std::size_t i = 0; i < plans.size(); ++i) {
    if (!seen_.insert(key_of(plans[i])).second)
      continue;
    fresh.push_back(plans[i]);
    place.push_back(i);
  }
  const auto figures = evaluator_.try_all(fresh, control_);
  std::vector<double> values(plans.size(), std::numeric_limits<double>::infinity());
  for (std::size_t i = 0; i < fresh.size(); ++i) {
    ++result_.evaluations;
    if (!scheduled_.note(figures[i].has_value()))
      continue;
    tiles_ += static_cast<double>(figures[i]->tiles);
    values[place[i]] = figures[i]->value(options_.objective);
    offer(FusionMethod::cost, fresh[i], *figures[i]);
  }
  tell("fusion: whole step");
  return values;
}

/// Estimated number of schedules of the whole step.
std::int64_t FusionSearch::expected() const {
  const double share = tiles_ > 0 ? options_.tiles / tiles_ : 0;
  const double all = std::min(static_cast<double>(spent()) * share,
                              static_cast<double>(kMoreEvaluations * options_.evaluations));
  return std::max(options_.evaluations, static_cast<std::int64_t>(all));
}

void FusionSearch::improve() {
  FusionWeights mixed = weights_;
  mixed.dram = weights(Objective::dram).dram;
  FusionMoves moves(problem_, options_, order_, *segments_,
                    {weights_, mixed, weights(Objective::dram)});
  for (const FusionAnswer& answer : result_.compared) {
    if (answer.figures)
      moves.know(answer.plan);
  }
  FusionPlan plan;
  const auto propose = [&] {
    std::vector<FusionPlan> batch;
    const auto room = static_cast<std::size_t>(expected() - spent());
    plan = result_.plan;
    moves.next(plan, std::min(kBatch, room), seen_, batch);
    return batch;
  };
  const auto judge = [&](const std::vector<FusionPlan>& batch) {
    const double before = best_value_;
    const std::vector<double> values = try_plans(batch);
    std::vector<std::size_t> gains;
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (values[i] < before)
        gains.push_back(i);
    }
    std::ranges::stable_sort(gains,
                             [&](std::size_t a, std::size_t b) { return values[a] < values[b]; });
    if (gains.size() < 2 || spent() >= expected() || stopped())
      return;
    if (const auto all = moves.together(plan, gains))
      try_plans({*all});
  };
  run_batches(
      control_, [&] { return spent() >= expected() || proven(); }, propose, judge);
}

void FusionSearch::require_plan() const {
  if (best_)
    return;
  if (stopped())
    throw control_.stopped("before any plan was found");
  throw InfeasibleError(why_not_);
}

void FusionSearch::certify(bool is_whole) {
  result_.certificate.best = best_value_;
  result_.certificate.start = start_;
  result_.certificate.interrupted = (!is_whole || stopped()) && !proven() && !result_.complete;
  weights_ = weights(options_.objective);
  if (scheduled_.candidates > 0)
    result_.kept.push_back(scheduled_);
}

namespace {

class BriefSearch : FusionSearch {
public:
  BriefSearch(const FusionProblem& problem, const FusionOptions& options,
              const SearchControl& control)
      : FusionSearch(problem, options, control) {}

  FusionResult run() {
    bool is_whole = control_.finishes([&] { layer_by_layer(); });
    is_whole = is_whole && run_search({{}, [&] { bound(); }, [&] { improve_given(); }}, control_);
    require_plan();
    certify(is_whole);
    return std::move(result_);
  }

private:
  void improve_given() {
    if (problem_.tiling.stacks && !stopped())
      try_given();
    search_by_cost();
  }

  /// Evaluates the stacks and slices of the tiling options as a plan.
  void try_given() {
    FusionAnswer own{FusionMethod::cost, {}, std::nullopt, {}};
    consider(own, automatic_fusion(problem_.step, problem_.chip, problem_.tiling));
  }
};

} // namespace

std::optional<FusionResult> search_briefly(const FusionProblem& problem,
                                           const BriefSearchOptions& brief,
                                           const StepFigures& given, const SearchControl& control) {
  constexpr std::int64_t kMaxTiles = 40'000; // maximum tiles of the given plan
  if (std::ranges::find(kFusionObjectives, brief.objective) == kFusionObjectives.end() ||
      problem.tiling.allocation != nullptr || gives_cores(problem.tiling.mapping) ||
      given.tiles > kMaxTiles)
    return std::nullopt;
  FusionOptions options;
  const std::int64_t times = brief.effort == Effort::thorough ? 10 : 1;
  options.objective = brief.objective;
  options.evaluations = 20 * times;
  options.tiles = 500e3 * static_cast<double>(times);
  options.group_evaluations = 1500 * times;
  options.group_tiles = 600e3 * static_cast<double>(times);
  options.complete_below = 100 * times;
  return BriefSearch(problem, options, control).run();
}

} // namespace monet

// The search for a whole step: known plans, covers by groups that gain on their own, then changes
// of the best plan, each judged by a schedule of the whole step.
#include "optimise/fusion/complete.hpp"
#include "optimise/fusion/evaluate.hpp"
#include "optimise/fusion/groups.hpp"
#include "optimise/fusion/moves.hpp"
#include "optimise/fusion/original.hpp"

#include "monet/base/errors.hpp"
#include "monet/base/stage.hpp"
#include "monet/optimise/fusion.hpp"
#include "monet/optimise/step_bounds.hpp"
#include "monet/optimise/step_mode.hpp"
#include "monet/tiling/allocation.hpp"

#include <algorithm>
#include <set>

namespace monet {

namespace {

/// Plans of the search have at most so many times the tiles of layer by layer, or so many.
constexpr std::size_t kMoreTiles = 24;
constexpr std::size_t kSomeTiles = 20000;
constexpr std::size_t kBatch = 8;
/// Searches with fewer schedules spare themselves the brief one.
constexpr std::int64_t kSpared = 100;
/// Schedules of small steps are no more times those asked for at least.
constexpr std::int64_t kMoreEvaluations = 5;

class Search {
public:
  Search(const FusionProblem& problem, const FusionOptions& options, const SearchControl& control)
      : problem_(problem), options_(options), control_(control), evaluator_(problem),
        order_(problem.step.graph) {
    const TilePlanner planner(problem.step, problem.chip, problem.tiling);
    for (std::size_t i = 0; i < order_.size(); ++i)
      cores_.push_back(planner.cores(OpId(i)));
  }

  FusionResult run() {
    control_.finishes([&] { search(); });
    finish(); // with the best so far
    return std::move(result_);
  }

private:
  void search() {
    {
      const StopScope scope(control_.first_plan_request());
      layer_by_layer();
      bound(std::max(kMoreTiles * alone_.tiles, FusionEvaluator::kMostTiles));
    }
    const StopScope scope(control_.stop_request());
    if (problem_.tiling.stacks && options_.method == FusionMethod::cost && !stopped())
      given();
    if (!options_.brief && wanted(FusionMethod::automatic))
      automatic();
    for (const FusionMethod method : {FusionMethod::fewest_groups, FusionMethod::least_traffic}) {
      const bool asked = options_.tries_original || options_.method == method;
      if (!options_.brief && asked && wanted(method))
        original(method);
    }
    if (options_.method == FusionMethod::cost)
      by_cost();
  }

  bool wanted(FusionMethod method) const {
    return (options_.method == FusionMethod::cost || options_.method == method) && !stopped();
  }
  bool stopped() const { return control_.interrupted(); }
  bool proven() const { return best_ && best_value_ <= result_.certificate.bound; }

  /// For all plans of so many tiles.
  void bound(std::size_t most_tiles) {
    StepBoundOptions options;
    options.made_once = problem_.tiling.halo == Halo::cached && !options_.recomputed_halos;
    options.cores = cores_;
    options.most_tiles = static_cast<double>(most_tiles);
    result_.certificate.bound =
        step_bounds(problem_.step, problem_.chip, options).least(options_.objective);
  }

  /// Keeps it on the front where nothing there is as good.
  void add_to_front(const FusionPlan& plan, const StepFigures& figures) {
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

  /// Takes the answer over if it is the best.
  bool offer(FusionMethod method, const FusionPlan& plan, const StepFigures& figures) {
    add_to_front(plan, figures);
    const double value = figures.value(options_.objective);
    const bool better = !best_ || value < best_value_;
    if (better) {
      best_ = true;
      best_value_ = value;
      result_.method = method;
      result_.plan = plan;
      result_.figures = figures;
    }
    result_.trace.push_back(best_value_);
    return better;
  }

  void tell(std::string_view phase) const {
    control_.tell({phase, result_.evaluations, expected(),
                   best_ ? best_value_ : std::numeric_limits<double>::quiet_NaN(),
                   result_.certificate.bound});
  }

  void layer_by_layer() {
    // As a plan: no stacks, and where a mapping would slice an operator alone, it stays whole.
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
      evaluator_.limit_tiles(std::max(kMoreTiles * tiles, kSomeTiles));
    } catch (const InfeasibleError& error) {
      answer.why_not = error.what();
    }
    compare(std::move(answer), "fusion: layer by layer");
  }

  /// The answer of a method counts, or why there is none.
  void compare(FusionAnswer answer, std::string_view phase) {
    if (!answer.figures && why_not_.empty())
      why_not_ = answer.why_not;
    result_.compared.push_back(std::move(answer));
    tell(phase);
  }

  void known_plan(FusionMethod method, FusionPlan plan) {
    FusionAnswer answer{method, plan, std::nullopt, {}};
    consider(answer, std::move(plan));
    compare(std::move(answer), "fusion: known plans");
  }

  /// Stacks that the caller has to begin with; where they do not fit, others may.
  void given() {
    FusionAnswer own{FusionMethod::cost, {}, std::nullopt, {}};
    consider(own, automatic_fusion(problem_.step, problem_.chip, problem_.tiling));
  }

  /// What choose_step() chooses from.
  void automatic() {
    TilingOptions tiling = problem_.tiling;
    tiling.stacks.reset();
    tiling.slices.clear();
    std::vector<FusionPlan> plans =
        fusion_candidates(problem_.step, problem_.chip, tiling, problem_.schedule, problem_.costs);
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

  /// Takes the plan over if it is the best of the method's.
  void consider(FusionAnswer& best, FusionPlan plan) {
    ++result_.evaluations;
    try {
      const StepFigures figures = evaluator_.must(plan);
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
    known_plan(method, automatic_fusion(problem_.step, problem_.chip, tiling));
  }

  void by_cost() {
    if (stopped() || proven())
      return;
    FusionPlans plans(problem_.step.graph, order_, options_);
    if (plans.count(options_.complete_below) <= options_.complete_below) {
      every(plans);
      return;
    }
    segments_ = std::make_unique<FusionSegments>(problem_, evaluator_, options_, order_);
    weights_ = weights(options_.objective);
    const std::array<FusionWeights, 2> judged{weights_, weights(Objective::dram)};
    result_.group_evaluations += segments_->evaluate(judged, control_);
    covers();
    improve();
    std::vector<KeepRate> rates = segments_->rates(weights_);
    rates.insert(rates.end(), result_.kept.begin(), result_.kept.end());
    result_.kept = std::move(rates);
  }

  void every(FusionPlans& plans) {
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

  /// A percent of each of what layer by layer takes, or only of the objective.
  FusionWeights weights(Objective objective) const {
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

  /// Plans that differ in what groups are judged by.
  void covers() {
    std::vector<FusionPlan> plans{plan_of(segments_->cover(weights_))};
    for (const Objective other : kFusionObjectives) {
      FusionWeights mixed = weights(other);
      plans.push_back(plan_of(segments_->cover(mixed)));
      mixed.latency += weights_.latency;
      mixed.energy += weights_.energy;
      mixed.dram += weights_.dram;
      plans.push_back(plan_of(segments_->cover(mixed)));
    }
    try_plans(plans);
  }

  /// Takes the best over. Values of the plans; infinity for those that cannot be scheduled or have
  /// been before.
  std::vector<double> try_plans(const std::vector<FusionPlan>& plans) {
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

  /// Schedules of the whole step that there will be, as far as is known.
  std::int64_t expected() const {
    const double share = tiles_ > 0 ? options_.tiles / tiles_ : 0;
    const double all = std::min(static_cast<double>(result_.evaluations) * share,
                                static_cast<double>(kMoreEvaluations * options_.evaluations));
    return std::max(options_.evaluations, static_cast<std::int64_t>(all));
  }

  void improve() {
    FusionWeights mixed = weights_;
    mixed.dram = weights(Objective::dram).dram;
    FusionMoves moves(problem_, options_, order_, *segments_,
                      {weights_, mixed, weights(Objective::dram)});
    for (const FusionAnswer& answer : result_.compared) {
      if (answer.figures)
        moves.know(answer.plan);
    }
    while (result_.evaluations < expected() && !stopped() && !proven()) {
      std::vector<FusionPlan> batch;
      const auto room = static_cast<std::size_t>(expected() - result_.evaluations);
      const FusionPlan plan = result_.plan;
      const double before = best_value_;
      moves.next(plan, std::min(kBatch, room), seen_, batch);
      if (batch.empty())
        return; // nothing left to change
      const std::vector<double> values = try_plans(batch);
      std::vector<std::size_t> gains;
      for (std::size_t i = 0; i < values.size(); ++i) {
        if (values[i] < before)
          gains.push_back(i);
      }
      std::ranges::stable_sort(gains,
                               [&](std::size_t a, std::size_t b) { return values[a] < values[b]; });
      if (gains.size() < 2 || result_.evaluations >= expected() || stopped())
        continue;
      if (const auto all = moves.together(plan, gains))
        try_plans({*all});
    }
  }

  void finish() {
    if (!best_) {
      if (stopped())
        throw control_.stopped("before any plan was found");
      throw InfeasibleError(why_not_);
    }
    if (options_.method != FusionMethod::cost)
      take_asked();
    result_.certificate.best = best_value_;
    result_.certificate.interrupted = stopped() && !proven() && !result_.complete;
    weights_ = weights(options_.objective);
    if (scheduled_.candidates > 0)
      result_.kept.push_back(scheduled_);
    if (!result_.certificate.interrupted && !options_.brief)
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

  const FusionProblem& problem_;
  const FusionOptions& options_;
  const SearchControl& control_;
  FusionEvaluator evaluator_;
  FusionOrder order_;
  std::vector<std::vector<CoreId>> cores_;
  std::unique_ptr<FusionSegments> segments_;
  FusionWeights weights_;
  FusionResult result_;
  StepFigures alone_; ///< layer by layer
  bool best_ = false;
  double best_value_ = 0;
  std::string why_not_;
  std::set<std::string> seen_;
  double tiles_ = 0; ///< of all plans that were scheduled
  KeepRate scheduled_{"whole plans: fit the chip, in no more tiles than are searched"};
};

} // namespace

std::string_view name_of(FusionMethod method) {
  constexpr std::array<std::string_view, 5> kNames{"cost", "fewest-groups", "least-traffic", "auto",
                                                   "none"};
  return kNames.at(static_cast<std::size_t>(method));
}

FusionResult optimise_fusion(const FusionProblem& problem, const FusionOptions& options,
                             const SearchControl& control) {
  return Search(problem, options, control).run();
}

} // namespace monet

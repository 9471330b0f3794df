// Searches for the best core allocation by branch and bound, a genetic algorithm or local search;
// optimise and the joint search call it.
#include "base/shared/pareto.hpp"
#include "base/shared/rng.hpp"
#include "optimise/allocation/branch_and_bound.hpp"
#include "optimise/allocation/moves.hpp"
#include "optimise/shared/nsga2.hpp"
#include "optimise/shared/searches.hpp"

#include "monet/base/errors.hpp"
#include "monet/base/stage.hpp"
#include "monet/optimise/allocation.hpp"

#include <algorithm>
#include <limits>
#include <memory>

namespace monet {

const SearchInfo kAllocationSearch{
    .name = "allocation",
    .decides = "cores and parts of each operator",
    .options = "AllocationSearchOptions",
    .exact = "the space is small",
    .bound = "every allocation, groups and slices as given",
    .evaluation = "one schedule of the step",
    .method = "branch and bound; NSGA-II (Deb et al. 2002), then local search with restarts",
};

namespace {

/// Neighbours evaluated together; independent of the number of threads, so results do not depend on
/// it.
constexpr std::size_t kBatch = 16;
/// Batches without a better plan before local search restarts.
constexpr int kPatience = 12;
/// Maximum neighbours generated per remaining evaluation; bounds rule out the others.
constexpr std::size_t kMaxTries = 64;
constexpr std::int64_t kNoLimit = std::numeric_limits<std::int64_t>::max();

class AllocationSearch {
public:
  AllocationSearch(AllocationEvaluator& evaluator, const AllocationSearchOptions& options,
                   const SearchControl& control)
      : evaluator_(evaluator), options_(options), control_(control),
        before_(evaluator.evaluations()), moves_(evaluator) {}

  AllocationResult run() {
    const bool is_whole =
        run_search({[&] { begin(); }, [&] { bound(); }, [&] { search(); }}, control_);
    return finish(is_whole); // returns the best plan so far
  }

private:
  void search() {
    const AllocationBounds& bounds = *bounds_;
    for (const AllocationPlan& plan : {bounds.balanced(), bounds.fastest()})
      try_plan(plan);
    if (!options_.front && !limited() && evaluator_.plans() <= options_.exact_plans) {
      search_space();
    } else if (options_.front && evaluator_.plans() <= static_cast<double>(left())) {
      try_everything();
    } else {
      evolve();
      if (options_.front)
        improve_front();
      else
        improve();
    }
  }

  /// Evaluates the automatic and the given plan, the baselines of the search.
  void begin() {
    const AllocationPlan automatic = evaluator_.automatic();
    result_.automatic = {automatic, evaluator_.evaluate(automatic)};
    for (const AllocationPlan& plan : {automatic, evaluator_.given()}) {
      starts_.push_back(plan);
      take(plan, evaluator_.evaluate(plan));
      start_ = evaluator_.evaluate(plan).value(
          options_.objective); // finally the value of the given plan
    }
  }

  void bound() {
    for (const AllocationPlan& plan : options_.starts)
      try_plan(plan);
    bounds_ = std::make_unique<AllocationBounds>(evaluator_, control_);
    result_.certificate.bound = bounds_->bound(options_.objective);
  }

  bool limited() const { return options_.max_live_bytes != kNoLimit; }
  bool fits(const StepFigures& cost) const {
    return cost.feasible && cost.peak_memory_bytes <= options_.max_live_bytes;
  }
  /// Objective value; infinite if the plan does not fit.
  double value(const StepFigures& cost) const {
    return fits(cost) ? cost.value(options_.objective) : std::numeric_limits<double>::infinity();
  }
  double best() const { return value(result_.best.figures); }
  std::size_t used() const { return evaluator_.evaluations() - before_; }
  std::size_t left() const { return options_.evaluations - std::min(options_.evaluations, used()); }
  bool proved() const { return !options_.front && best() <= result_.certificate.bound; }

  void take(const AllocationPlan& plan, const StepFigures& cost) {
    if (result_.best.plan.empty() || value(cost) < best())
      result_.best = {plan, cost};
  }
  /// Schedules the plan unless a limit is reached.
  void try_plan(const AllocationPlan& plan) {
    starts_.push_back(plan);
    if (control_.interrupted() && !result_.best.plan.empty())
      return;
    take(plan, evaluator_.evaluate(plan));
  }

  /// Searches the whole space; the result is certified if the search completes.
  void search_space() {
    const AllocationProof proof =
        BranchAndBound(evaluator_, *bounds_, options_, control_, result_.best).run();
    result_.exact = proof.is_whole;
    result_.certificate.bound = std::max(result_.certificate.bound, proof.bound);
  }

  void try_everything() {
    AllocationPlan plan = evaluator_.automatic();
    bool is_last = false;
    const auto next_plans = [&] {
      std::vector<AllocationPlan> batch;
      while (batch.size() < kBatch && !is_last) {
        batch.push_back(plan);
        std::size_t op = 0;
        while (op < plan.size() && ++plan[op] == evaluator_.choices()[op].size())
          plan[op++] = 0;
        is_last = op == plan.size();
      }
      return batch;
    };
    run_batches(
        control_, [&] { return is_last; }, next_plans, [&](auto& batch) { evaluate(batch); });
    result_.exact = !control_.interrupted();
    if (result_.exact)
      result_.certificate.bound = std::max(result_.certificate.bound, best());
  }

  /// Schedules the batch and keeps the best plan. Returns whether any plan was scheduled.
  bool evaluate(const std::vector<AllocationPlan>& batch) {
    const auto costs = evaluator_.evaluate(batch, control_);
    std::optional<std::size_t> least;
    for (std::size_t i = 0; i < batch.size(); ++i) {
      if (!costs[i])
        continue;
      take(batch[i], *costs[i]);
      if (!least || value(*costs[i]) < value(*costs[*least]))
        least = i;
    }
    if (least) {
      last_ = {batch[*least], *costs[*least]};
      newly_.clear();
      for (std::size_t i = 0; i < batch.size(); ++i) {
        if (costs[i] && costs[i]->feasible)
          newly_.push_back({batch[i], *costs[i]});
      }
    }
    result_.trace.push_back({used(), best(), 0});
    control_.tell({"allocation: local search", static_cast<std::int64_t>(used()),
                   static_cast<std::int64_t>(std::max(options_.evaluations, used())), best(),
                   result_.certificate.bound});
    return least.has_value();
  }

  void evolve() {
    if (proved() || control_.interrupted() || left() == 0)
      return;
    Nsga2Problem problem;
    problem.objectives = options_.front ? 3 : 1;
    for (const auto& choices : evaluator_.choices())
      problem.shape.choices.push_back(static_cast<std::uint32_t>(choices.size()));
    problem.evaluate = [this](const Genome& genome) -> Evaluation {
      const StepFigures cost = evaluator_.evaluate(genome.choices);
      if (!cost.feasible)
        return {{}, std::numeric_limits<double>::max()};
      if (!fits(cost))
        return {{}, static_cast<double>(cost.peak_memory_bytes - options_.max_live_bytes)};
      return {options_.front ? objectives_of(cost) : Objectives{value(cost)}, 0};
    };
    Nsga2Options how;
    const std::size_t share = options_.front ? left() - left() / 5 : left() / 3;
    how.population = std::min(options_.population, std::max<std::size_t>(2, share));
    how.generations = options_.generations > 0
                          ? options_.generations
                          : std::max<std::size_t>(1, share / how.population) - 1;
    std::vector<AllocationPlan> starts = starts_;
    for (AllocationPlan& plan : moves_.simple_plans())
      starts.push_back(std::move(plan));
    if (starts.size() > how.population)
      starts.resize(how.population);
    for (AllocationPlan& plan : starts)
      how.initial.push_back({std::move(plan), {}});
    const Nsga2Result found = nsga2(problem, how, control_);
    for (const Individual& one : found.front) {
      if (found.feasible)
        take(one.genome.choices, evaluator_.evaluate(one.genome.choices));
    }
    for (const Generation& line : found.trace)
      result_.trace.push_back({line.evaluations, best_of(line), line.hypervolume});
    reference_ = found.reference;
  }

  double best_of(const Generation& line) const {
    if (line.least.empty())
      return std::numeric_limits<double>::infinity();
    if (!options_.front || options_.objective == Objective::latency)
      return line.least[0];
    if (options_.objective == Objective::energy)
      return line.least[1];
    return options_.objective == Objective::memory ? line.least[2] : best();
  }

  /// Local search from the best plan: the best of a batch of neighbours becomes the next plan if it
  /// is no worse. After a long time without improvement, it restarts some moves away from the best.
  void improve() {
    RandomStream random(control_.seed, 1);
    AllocationPoint now = result_.best;
    int failures = 0;
    bool is_over = false;
    const auto judge = [&](const std::vector<AllocationPlan>& batch) {
      const double before = best();
      is_over = !evaluate(batch);
      if (is_over)
        return;
      if (value(last_.figures) <= value(now.figures))
        now = last_;
      failures = best() < before ? 0 : failures + 1;
      if (failures < kPatience)
        return;
      failures = 0;
      now = result_.best;
      for (int i = 0; i < 3; ++i)
        moves_.change(now.plan, random);
      is_over = left() == 0 || control_.interrupted();
      if (is_over)
        return;
      now.figures = evaluator_.evaluate(now.plan);
      take(now.plan, now.figures);
    };
    run_batches(
        control_, [&] { return is_over || left() == 0 || proved(); },
        [&] { return neighbours(now.plan, random); }, judge);
  }

  /// New neighbours of this plan that may be better than the best.
  std::vector<AllocationPlan> neighbours(const AllocationPlan& plan, RandomStream& random) {
    std::vector<AllocationPlan> batch;
    const std::size_t wanted = std::min(kBatch, left());
    for (std::size_t tries = 0; tries < kMaxTries * kBatch && batch.size() < wanted; ++tries) {
      if (tries % kBatch == 0 && control_.interrupted())
        return {};
      AllocationPlan next = plan;
      moves_.change(next, random);
      if (next == plan || evaluator_.known(next) || std::ranges::find(batch, next) != batch.end())
        continue;
      if (!options_.front && bounds_->bound(options_.objective, next) >= best())
        continue;
      batch.push_back(std::move(next));
    }
    return batch;
  }

  /// Local search with a whole front: makes neighbours of any of its points.
  void improve_front() {
    RandomStream random(control_.seed, 2);
    std::vector<AllocationPoint> front = evaluator_.front();
    bool is_over = front.empty();
    const auto propose = [&] {
      return neighbours(front[static_cast<std::size_t>(random.below(front.size()))].plan, random);
    };
    const auto judge = [&](const std::vector<AllocationPlan>& batch) {
      is_over = !evaluate(batch);
      if (is_over)
        return;
      add_to_front(front);
      result_.trace.back().hypervolume = volume_of(front);
    };
    run_batches(
        control_, [&] { return is_over || left() == 0; }, propose, judge);
  }

  void add_to_front(std::vector<AllocationPoint>& front) {
    std::move(newly_.begin(), newly_.end(), std::back_inserter(front));
    newly_.clear();
    front = non_dominated_items(
        std::span<const AllocationPoint>(front),
        [](const AllocationPoint& point) { return objectives_of(point.figures); });
  }

  double volume_of(const std::vector<AllocationPoint>& front) const {
    if (reference_.empty())
      return 0;
    std::vector<Objectives> points;
    for (const AllocationPoint& point : front)
      points.push_back(objectives_of(point.figures));
    return hypervolume(points, reference_);
  }

  AllocationResult finish(bool is_whole) {
    result_.evaluations = used();
    result_.certificate.interrupted =
        (!is_whole || control_.interrupted()) && !result_.exact && !proved();
    result_.front = evaluator_.front();
    if (result_.best.plan.empty() && control_.interrupted())
      throw control_.stopped("before any plan was found");
    if (result_.best.plan.empty() || !fits(result_.best.figures)) {
      throw InfeasibleError("no allocation of operators to cores that was tried can be scheduled: "
                            "operands are too large for their cores' memories");
    }
    result_.certificate.best = best();
    result_.certificate.start = start_;
    result_.certificate.bound = std::min(result_.certificate.bound, best());
    return std::move(result_);
  }

  AllocationEvaluator& evaluator_;
  AllocationSearchOptions options_;
  const SearchControl& control_;
  std::size_t before_;
  AllocationMoves moves_;
  std::unique_ptr<const AllocationBounds> bounds_;
  std::vector<AllocationPlan> starts_;
  double start_ = std::numeric_limits<double>::quiet_NaN();
  AllocationPoint last_;               ///< best point of the last batch
  std::vector<AllocationPoint> newly_; ///< feasible points of the last batch
  Objectives reference_;
  AllocationResult result_;
};

} // namespace

NamedValue allocation_objective(AllocationSearchOptions& options) {
  constexpr std::size_t kFront = kAllocationObjectives.size();
  NamedValue objective;
  objective.value = &options;
  objective.names = [] {
    std::vector<std::string> names;
    for (const Objective one : kAllocationObjectives)
      names.emplace_back(name_of(one));
    names.emplace_back("front");
    return names;
  };
  objective.index = [](const void* at) {
    const auto& given = *static_cast<const AllocationSearchOptions*>(at);
    const auto found = std::ranges::find(kAllocationObjectives, given.objective);
    return given.front ? kFront : static_cast<std::size_t>(found - kAllocationObjectives.begin());
  };
  objective.set = [](void* at, std::size_t index) {
    auto& given = *static_cast<AllocationSearchOptions*>(at);
    given.front = index == kFront;
    given.objective = given.front ? Objective::latency : kAllocationObjectives.at(index);
  };
  return objective;
}

AllocationResult search_allocation(AllocationEvaluator& evaluator,
                                   const AllocationSearchOptions& options,
                                   const SearchControl& control) {
  return AllocationSearch(evaluator, options, control).run();
}

AllocationPoint best_random_allocation(AllocationEvaluator& evaluator, Objective objective,
                                       std::size_t count, const SearchControl& control) {
  constexpr std::size_t kRandomBatch = 256;
  RandomStream random(control.seed, 3);
  AllocationPoint best;
  std::size_t done = 0;
  const auto propose = [&] {
    std::vector<AllocationPlan> batch(std::min(kRandomBatch, count - done));
    for (AllocationPlan& plan : batch) {
      for (const auto& choices : evaluator.choices())
        plan.push_back(static_cast<std::uint32_t>(random.below(choices.size())));
    }
    return batch;
  };
  const auto judge = [&](const std::vector<AllocationPlan>& batch) {
    const auto costs = evaluator.evaluate(batch, control);
    for (std::size_t i = 0; i < batch.size(); ++i) {
      if (costs[i] &&
          (best.plan.empty() || costs[i]->value(objective) < best.figures.value(objective)))
        best = {batch[i], *costs[i]};
    }
    done += batch.size();
    control.tell({"allocation: random", static_cast<std::int64_t>(done),
                  static_cast<std::int64_t>(count), best.figures.value(objective)});
  };
  run_batches(
      control, [&] { return done >= count; }, propose, judge);
  return best;
}

} // namespace monet

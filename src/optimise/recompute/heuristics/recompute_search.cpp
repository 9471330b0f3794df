// Local search for recomputation plans within a budget: parallel chains remove runs and repair the
// plan; log and checkpoint searches use it.
#include "optimise/shared/recompute_search.hpp"

#include "base/shared/parallel.hpp"
#include "optimise/recompute/heuristics/repair.hpp"

#include "monet/optimise/recompute_problem.hpp"

#include <algorithm>

namespace monet {

namespace {

/// A chain ends after this number of rounds without a cheaper plan, and four times the rounds until
/// it last found one.
constexpr std::int64_t kPatience = 1500;
constexpr std::size_t kChains = 2; ///< parallel chains with independent random numbers

/// Plan within the budget, with the method that found it.
struct Found {
  std::optional<RecomputePlan> plan;
  std::int64_t cost = 0;
  std::string method;

  void offer(const RecomputePlan& other, std::int64_t other_cost, std::string_view by) {
    if (plan && cost <= other_cost)
      return;
    plan = other;
    cost = other_cost;
    method = by;
  }
};

/// One search: repeatedly removes additional runs around a random one and repairs the plan.
class Chain {
public:
  Chain(const RecomputeProblem& problem, std::int64_t budget, const RecomputeSearchOptions& options,
        const SearchControl& control, int number)
      : options_(options), control_(control), state_(problem, budget),
        repair_(state_, options.effort, control),
        random_(control.seed, static_cast<std::uint64_t>(number)), number_(number) {}

  Found run(const std::vector<RecomputePlan>& starts) {
    start(starts);
    if (!found_.plan)
      return std::move(found_);
    state_.assign(*found_.plan);
    repair_.forget();
    std::int64_t bettered = 0; // last round that found a cheaper plan
    for (std::int64_t done = 0; done < options_.rounds; ++done) {
      const double left =
          1 - static_cast<double>(state_.work()) / static_cast<double>(options_.effort);
      if (left <= 0 || control_.interrupted() || done > kPatience + 4 * bettered ||
          static_cast<double>(found_.cost) <= options_.bound)
        break;
      const std::int64_t before = found_.cost;
      round(std::min(left, 1 - static_cast<double>(done) / static_cast<double>(options_.rounds)));
      bettered = found_.cost < before ? done : bettered;
      constexpr std::int64_t kTellEvery = 16;
      if (number_ == 0 && done % kTellEvery == 0)
        control_.tell({"recomputation: rounds", done, options_.rounds,
                       static_cast<double>(found_.cost), options_.bound});
    }
    return std::move(found_);
  }

private:
  using Run = RecomputeRepair::Run;

  /// Makes every start fit, and continues from the cheapest.
  void start(const std::vector<RecomputePlan>& starts) {
    for (std::size_t i = 0; i < starts.size() && !control_.interrupted(); ++i) {
      if (found_.plan && state_.work() > options_.effort / 2)
        return;
      state_.assign(starts[i]);
      // The first chain uses exact costs, the others slightly perturbed ones.
      const bool fits = repair_.repair(number_ == 0 ? 0 : 0.3, random_);
      if (fits) {
        repair_.prune(repair_.further_runs());
        found_.offer(state_.plan(), state_.cost(), "search");
      }
      repair_.forget();
    }
  }

  /// Selects runs to remove: near a random one in time, among operators, or in its slot.
  std::vector<Run> choose(const std::vector<Run>& runs) {
    const Run pivot = runs[random_.below(runs.size())];
    const std::uint64_t kind = random_.below(4);
    const std::uint64_t most = 1 + random_.below(1 + std::min<std::uint64_t>(40, runs.size() / 2));
    const auto distance = [&](const Run& run) {
      const auto steps_between = [](std::uint32_t a, std::uint32_t b) {
        return a > b ? a - b : b - a;
      };
      if (kind == 0)
        return steps_between(run.first, pivot.first);
      if (kind == 1)
        return steps_between(run.second, pivot.second);
      return steps_between(run.first, pivot.first) + steps_between(run.second, pivot.second);
    };
    std::vector<Run> chosen = runs;
    if (chosen.size() > most) {
      const auto nearer = [&](const Run& a, const Run& b) {
        return std::make_pair(distance(a), a) < std::make_pair(distance(b), b);
      };
      std::nth_element(chosen.begin(), chosen.begin() + static_cast<std::ptrdiff_t>(most),
                       chosen.end(), nearer);
      chosen.resize(most);
    }
    if (kind == 3) // only some of them
      std::erase_if(chosen, [&](const Run&) { return random_.chance(0.5); });
    std::ranges::sort(chosen);
    state_.charge(static_cast<std::int64_t>(runs.size()) * 4);
    return chosen;
  }
  void round(double warmth) {
    const std::vector<Run> runs = repair_.further_runs();
    state_.charge(state_.ops() / 4 + 100);
    if (runs.empty())
      return;
    const std::int64_t before = state_.cost();
    for (const auto& [t, v] : choose(runs))
      repair_.remove(t, v);
    bool good = repair_.repair(0.4, random_);
    if (good) {
      std::vector<Run> touched;
      for (const RecomputeRepair::Change& change : repair_.changes())
        if (change.added)
          touched.emplace_back(change.slot, change.op);
      for (int i = 0; i < 10; ++i)
        touched.push_back(runs[random_.below(runs.size())]);
      std::ranges::sort(touched);
      touched.erase(std::unique(touched.begin(), touched.end()), touched.end());
      repair_.prune(std::move(touched));
      // Accepts more expensive plans with a falling tolerance, a share of the cost of additional
      // runs.
      const double allowed =
          warmth * warmth * 0.002 * static_cast<double>(before - base_cost_of(runs));
      good = static_cast<double>(state_.cost() - before) <= allowed * random_.unit();
    }
    if (!good) {
      repair_.undo_to(0);
      return;
    }
    repair_.forget();
    if (state_.cost() < found_.cost)
      found_.offer(state_.plan(), state_.cost(), "search");
  }
  std::int64_t base_cost_of(const std::vector<Run>& runs) const {
    std::int64_t again = 0;
    for (const Run& run : runs)
      again += state_.cost(run.second);
    return state_.cost() > again ? state_.cost() - again : 0;
  }

  const RecomputeSearchOptions& options_;
  const SearchControl& control_;
  RecomputeState state_;
  RecomputeRepair repair_;
  RandomStream random_;
  int number_;
  Found found_;
};

} // namespace

RecomputeResult search_recompute(const RecomputeProblem& problem, std::int64_t budget,
                                 const RecomputeSearchOptions& options,
                                 const SearchControl& control) {
  RecomputeResult result;
  result.bound = std::max(options.bound, static_cast<double>(problem.base_cost()));
  if (budget < peak_bound(problem)) {
    result.infeasible = true;
    return result;
  }
  Found best;
  // Given starts come first: they are probably close to the optimum, and time may be short.
  std::vector<RecomputePlan> starts = options.starts;
  starts.push_back(store_everything(problem));
  const auto offer = [&](const RecomputePlan& plan, std::string_view method) {
    if (const RecomputeOutcome outcome = replay(problem, plan); outcome.peak_bytes <= budget)
      best.offer(plan, outcome.cost, method);
  };
  offer(starts.back(), "store everything");
  for (const RecomputePlan& plan : options.starts)
    offer(plan, "start");
  const auto optimal = [&] { return best.plan && static_cast<double>(best.cost) <= result.bound; };
  if (!optimal())
    for (const RecomputeHeuristic heuristic : kRecomputeHeuristics) {
      HeuristicPlan found = run_heuristic(problem, budget, heuristic, control);
      if (!found.plan)
        continue;
      offer(*found.plan, to_string(heuristic));
      starts.push_back(std::move(*found.plan));
    }
  if (!optimal()) {
    RecomputeSearchOptions own = options;
    own.bound = result.bound;
    std::vector<Found> found(kChains);
    parallel_for(found.size(), control.jobs, [&](std::size_t i) {
      found[i] = Chain(problem, budget, own, control, static_cast<int>(i)).run(starts);
    });
    for (const Found& one : found)
      if (one.plan)
        best.offer(*one.plan, one.cost, one.method);
  }
  result.interrupted = control.interrupted();
  if (best.plan) {
    result.plan = std::move(best.plan);
    result.outcome = replay(problem, *result.plan);
    result.method = best.method;
  }
  return result;
}

} // namespace monet

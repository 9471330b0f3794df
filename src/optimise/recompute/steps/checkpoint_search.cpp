// Searches recomputation plans within memory budgets by several methods and bounds them; optimise
// and the joint search call it.
#include "monet/optimise/checkpoint_search.hpp"

#include "optimise/recompute/steps/checkpoint_chain.hpp"
#include "optimise/shared/recompute_exact.hpp"
#include "optimise/shared/recompute_search.hpp"
#include "optimise/shared/searches.hpp"
#include "optimise/shared/window_bound.hpp"

#include "monet/base/errors.hpp"
#include "monet/optimise/recompute_problem.hpp"

#include <algorithm>
#include <utility>

namespace monet {

const SearchInfo kCheckpointSearch{
    .name = "checkpointing",
    .decides = "what is kept, what is made again",
    .options = "CheckpointOptions",
    .exact = "proven by the search itself (gap 0)",
    .bound = "every plan, any operator again anywhere",
    .evaluation = "one replay of a plan; one linear program in proofs",
    .method = "dynamic programming of chains, local search, stages as integer programs",
};

namespace {

/// Number and nodes of rough searches for plans from which the peak search starts.
constexpr int kTries = 4;
constexpr std::int64_t kRoughNodes = 100;
constexpr double kRoughGap = 5e-3;
/// Maximum operators for solve_recompute(); more take too long.
constexpr std::size_t kExactOperators = 400;
constexpr std::size_t kMoments = 6;
constexpr std::size_t kChainBudgets = 24;

class Front {
public:
  Front(const CheckpointSpace& space, std::span<const std::int64_t> budgets,
        const CheckpointOptions& options, const SearchControl& control)
      : space_(space), budgets_(budgets), options_(options), control_(control) {}

  std::vector<RecomputeResult> run() {
    internal_check(std::is_sorted(budgets_.rbegin(), budgets_.rend()), "budgets fall");
    add(store_everything(space_.problem), "store everything");
    for (const RecomputePlan& start : options_.starts)
      add(start, "start");
    for (const std::int64_t budget : budgets_) {
      control_.tell({"checkpointing: budget", static_cast<std::int64_t>(results_.size()),
                     static_cast<std::int64_t>(budgets_.size())});
      results_.push_back(search(budget));
    }
    take_over();
    return std::move(results_);
  }

private:
  struct EvaluatedPlan {
    CheckpointPoint point;
    std::string method;
  };

  void add(RecomputePlan plan, std::string method) {
    known_.push_back(
        {evaluate(space_, without_idle_runs(space_.problem, plan)), std::move(method)});
  }

  RecomputeResult search(std::int64_t budget) {
    RecomputeResult result;
    result.bound = static_cast<double>(space_.problem.base_cost());
    if (known_.front().point.memory(options_.memory) <= budget)
      return result; // everything fits
    switch (options_.method) {
    case CheckpointMethod::heuristics:
      heuristics(budget);
      break;
    case CheckpointMethod::chain:
      chain();
      break;
    case CheckpointMethod::genetic:
      genetic();
      break;
    case CheckpointMethod::automatic:
      if (options_.memory == CheckpointMemory::stored)
        stored(budget, result);
      else
        peak(budget, result);
      break;
    }
    result.interrupted = result.interrupted || (control_.interrupted() && !result.infeasible &&
                                                !is_proven(budget, result));
    return result;
  }

  void stored(std::int64_t budget, RecomputeResult& result) {
    const RecomputeResult found = solve_stored(space_, budget, control_);
    result.bound = found.bound;
    result.infeasible = found.infeasible;
    result.interrupted = found.interrupted;
    if (found.plan)
      add(*found.plan, found.method);
  }

  void peak(std::int64_t budget, RecomputeResult& result) {
    if (min_memory(space_, CheckpointMemory::peak) > budget) {
      result.infeasible = true;
      return;
    }
    bound_moments(budget, result);
    if (result.infeasible)
      return;
    chain();
    start_from_stored(budget);
    if (!is_proven(budget, result)) {
      RecomputeSearchOptions searching;
      searching.effort = options_.effort;
      searching.starts = plans();
      searching.bound = result.bound;
      RecomputeResult found = search_recompute(space_.problem, budget, searching, control_);
      if (found.plan)
        add(std::move(*found.plan), found.method);
    }
    if (!is_proven(budget, result) && space_.problem.ops.size() <= kExactOperators)
      solve(budget, result);
  }

  void solve(std::int64_t budget, RecomputeResult& result) {
    RecomputeExactOptions solving;
    solving.nodes = options_.nodes;
    solving.starts = plans();
    RecomputeResult found = solve_recompute(space_.problem, budget, control_, solving);
    result.bound = std::max(result.bound, found.bound);
    result.infeasible = found.infeasible;
    result.interrupted = result.interrupted || found.interrupted;
    if (found.plan)
      add(std::move(*found.plan), found.method);
  }

  const EvaluatedPlan* best_within(std::int64_t budget) const {
    const EvaluatedPlan* best = nullptr;
    for (const EvaluatedPlan& known : known_) {
      if (known.point.memory(options_.memory) <= budget &&
          (!best || known.point.cost < best->point.cost))
        best = &known;
    }
    return best;
  }

  bool is_proven(std::int64_t budget, const RecomputeResult& result) const {
    const EvaluatedPlan* best = best_within(budget);
    return best && static_cast<double>(best->point.cost) <= result.bound;
  }

  /// Bounds cost at a few moments (the peak, and points of the backward part), and over windows of
  /// moments.
  void bound_moments(std::int64_t budget, RecomputeResult& result) const {
    const RecomputeProblem& problem = space_.problem;
    const RecomputeOutcome base = replay(problem, store_everything(problem));
    const auto first = std::ranges::find(space_.backward, 1) - space_.backward.begin();
    std::vector<std::size_t> moments{base.peak_run};
    for (std::size_t k = 0; k < kMoments; ++k) {
      const auto begin = static_cast<std::size_t>(first);
      moments.push_back(begin + (problem.ops.size() - begin) * k / kMoments);
    }
    for (const std::size_t at : moments) {
      if (at >= problem.ops.size() || control_.interrupted())
        continue;
      const MomentBound found =
          moment_bound(problem, static_cast<std::uint32_t>(at), budget, control_);
      result.bound = std::max(result.bound, found.cost);
      result.infeasible = result.infeasible || found.infeasible;
    }
    const WindowBound windows = window_bound(problem, budget, control_);
    result.bound = std::max(result.bound, static_cast<double>(windows.cost));
    result.infeasible = result.infeasible || windows.infeasible;
    result.interrupted = result.interrupted || control_.interrupted();
  }

  std::vector<RecomputePlan> plans() const {
    std::vector<RecomputePlan> list;
    for (const EvaluatedPlan& known : known_)
      list.push_back(known.point.plan);
    return list;
  }

  void heuristics(std::int64_t budget) {
    for (const RecomputeHeuristic heuristic : kRecomputeHeuristics) {
      HeuristicPlan found = run_heuristic(space_.problem, budget, heuristic, control_);
      if (found.plan)
        add(std::move(*found.plan), std::string(to_string(heuristic)));
    }
  }

  /// Adds chain plans, once for all budgets.
  void chain() {
    if (std::exchange(chain_done_, true))
      return;
    for (RecomputePlan& plan : chain_plans(space_, kChainBudgets, control_))
      add(std::move(plan), "chain");
  }

  void genetic() {
    if (std::exchange(genetic_done_, true))
      return;
    for (CheckpointPoint& point :
         genetic_checkpoints(space_, {}, options_.memory, options_.genetic, control_))
      known_.push_back({std::move(point), "genetic"});
  }

  /// Adds plans with fewer stored bytes, first by the required reduction of the peak, then by more
  /// while the peak is too high.
  void start_from_stored(std::int64_t budget) {
    const CheckpointPoint& all = known_.front().point;
    std::int64_t level = std::max<std::int64_t>(0, all.stored_bytes - (all.peak_bytes - budget));
    StoredOptions rough{.nodes = kRoughNodes, .gap = kRoughGap};
    for (int tries = 0; tries < kTries && !control_.interrupted(); ++tries, level = level * 3 / 4) {
      const RecomputeResult found = solve_stored(space_, level, control_, rough);
      if (!found.plan)
        break;
      add(*found.plan, found.method);
      if (known_.back().point.peak_bytes <= budget)
        break;
    }
  }

  /// Stores the cheapest known plan for each budget and the highest bound of larger budgets.
  void take_over() {
    double bound = 0;
    bool infeasible = false;
    for (std::size_t i = 0; i < budgets_.size(); ++i) {
      RecomputeResult& result = results_[i];
      bound = std::max(bound, result.bound);
      infeasible = infeasible || result.infeasible;
      result.infeasible = infeasible;
      result.bound = bound;
      const EvaluatedPlan* best = best_within(budgets_[i]);
      if (!best)
        continue;
      internal_check(!infeasible, "a plan for a budget that has none");
      result.plan = best->point.plan;
      result.outcome = replay(space_.problem, *result.plan);
      result.method = best->method;
    }
  }

  const CheckpointSpace& space_;
  std::span<const std::int64_t> budgets_;
  const CheckpointOptions& options_;
  const SearchControl& control_;
  std::vector<EvaluatedPlan> known_; ///< the first plan stores everything
  std::vector<RecomputeResult> results_;
  bool chain_done_ = false;
  bool genetic_done_ = false;
};

/// Live bytes of any plan, per operator.
std::vector<std::int64_t> forced_bytes(const RecomputeProblem& problem) {
  const std::size_t count = problem.ops.size();
  std::vector<std::int64_t> change(count + 1, 0);
  std::vector<std::int64_t> own(count, 0);
  std::vector<std::size_t> last(problem.buffers.size(), 0);
  for (std::size_t i = 0; i < count; ++i) {
    for (const auto* list : {&problem.ops[i].reads, &problem.ops[i].writes}) {
      for (const std::uint32_t b : *list)
        last[b] = i;
    }
  }
  const auto stays = [&](const RecomputeProblem::Buffer& buffer) {
    return !buffer.producer || !problem.ops[*buffer.producer].repeatable;
  };
  for (std::size_t b = 0; b < problem.buffers.size(); ++b) {
    const RecomputeProblem::Buffer& buffer = problem.buffers[b];
    if (!stays(buffer))
      continue;
    change[buffer.producer.value_or(0)] += buffer.bytes;
    const bool to_the_end = !buffer.producer || buffer.kept;
    change[to_the_end ? count : last[b] + 1] -= buffer.bytes;
  }
  for (std::size_t i = 0; i < count; ++i) {
    own[i] = problem.ops[i].scratch;
    for (const auto* list : {&problem.ops[i].reads, &problem.ops[i].writes}) {
      for (const std::uint32_t b : *list)
        own[i] += stays(problem.buffers[b]) ? 0 : problem.buffers[b].bytes;
    }
  }
  std::int64_t now = 0;
  for (std::size_t i = 0; i < count; ++i) {
    now += change[i];
    own[i] += now;
  }
  return own;
}

/// Bytes needed that cannot be recomputed, maximum over micro-batches.
std::int64_t forced_stored(const CheckpointSpace& space) {
  std::vector<std::int64_t> sums(space.micro.back() + 1, 0);
  for (std::size_t b = 0; b < space.needed.size(); ++b) {
    const RecomputeProblem::Buffer& buffer = space.problem.buffers[b];
    if (space.needed[b] != 0 && buffer.producer && !space.problem.ops[*buffer.producer].repeatable)
      sums[space.micro[*buffer.producer]] += buffer.bytes;
  }
  return *std::ranges::max_element(sums);
}

} // namespace

std::int64_t min_memory(const CheckpointSpace& space, CheckpointMemory of) {
  if (of == CheckpointMemory::stored)
    return forced_stored(space);
  const std::vector<std::int64_t> forced = forced_bytes(space.problem);
  return std::max(peak_bound(space.problem), *std::ranges::max_element(forced));
}

std::vector<RecomputeResult> checkpoint_front(const CheckpointSpace& space,
                                              std::span<const std::int64_t> budgets,
                                              const CheckpointOptions& options,
                                              const SearchControl& control) {
  return Front(space, budgets, options, control).run();
}

} // namespace monet

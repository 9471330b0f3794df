// Sublinear-memory training (Chen et al. 2016) for any graph with a fixed order; one of the
// recomputation heuristics.
#include "optimise/recompute/heuristics/dtr.hpp"

#include "monet/optimise/recompute_problem.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace monet {

namespace {

class Segments {
public:
  explicit Segments(const RecomputeProblem& problem)
      : problem_(problem), turn_(replay(problem, store_everything(problem)).peak_run),
        last_forward_(problem.buffers.size(), 0) {
    for (std::uint32_t i = 0; i < turn_; ++i)
      for (const std::uint32_t b : problem.ops[i].reads)
        last_forward_[b] = i;
    find_candidates();
  }

  /// Operators before the peak whose outputs may be kept: all, or articulation points.
  const std::vector<std::uint32_t>& candidates(bool articulation) const {
    return articulation ? articulation_ : all_;
  }
  std::int64_t forward_bytes() const {
    std::int64_t sum = 0;
    for (const std::uint32_t i : all_)
      sum += problem_.written_bytes(i);
    return sum;
  }

  /// Plan that keeps the outputs of these operators and everything after the last of them.
  RecomputePlan plan(const std::vector<std::uint32_t>& kept_ops) {
    kept_.assign(problem_.ops.size(), false);
    for (const std::uint32_t i : kept_ops)
      kept_[i] = true;
    const std::size_t tail = kept_ops.empty() ? 0 : kept_ops.back();
    for (std::size_t i = 0; i < kept_.size(); ++i)
      if (i >= tail || i >= turn_ || !problem_.ops[i].repeatable)
        kept_[i] = true;
    RecomputePlan plan;
    for (std::uint32_t t = 0; t < problem_.ops.size(); ++t) {
      if (t >= turn_)
        make_ready(problem_.ops[t], plan);
      plan.runs.push_back(t);
    }
    return plan;
  }

private:
  void find_candidates() {
    std::vector<std::uint32_t> ends(problem_.ops.size() + 1,
                                    0); // buffers read last by each operator
    std::int64_t live = 0;              // bytes that later forward operators read
    for (std::uint32_t i = 0; i < turn_; ++i) {
      const RecomputeProblem::Op& op = problem_.ops[i];
      std::int64_t own = 0;
      for (const std::uint32_t b : op.writes)
        if (last_forward_[b] > i) {
          ++ends[last_forward_[b]];
          ++own;
        }
      live += own - ends[i];
      if (op.writes.empty() || !op.repeatable)
        continue;
      all_.push_back(i);
      if (live == own && own == 1)
        articulation_.push_back(i);
    }
  }
  /// Recomputes, in order, every missing input of an operator.
  void make_ready(const RecomputeProblem::Op& op, RecomputePlan& plan) {
    again_.clear();
    const auto need = [&](const RecomputeProblem::Op& reader) {
      for (const std::uint32_t b : reader.reads) {
        const std::optional<std::uint32_t> producer = problem_.buffers[b].producer;
        if (!producer || kept_[*producer])
          continue;
        kept_[*producer] = true; // kept from this run on
        again_.push_back(*producer);
      }
    };
    need(op);
    for (std::size_t next = 0; next < again_.size(); ++next)
      need(problem_.ops[again_[next]]);
    std::ranges::sort(again_);
    plan.runs.insert(plan.runs.end(), again_.begin(), again_.end());
  }

  const RecomputeProblem& problem_;
  std::size_t turn_; ///< the operator at the peak; earlier ones are forward
  std::vector<std::uint32_t> last_forward_;
  std::vector<std::uint32_t> all_;
  std::vector<std::uint32_t> articulation_;
  std::vector<bool> kept_;
  std::vector<std::uint32_t> again_;
};

/// Every root-th candidate.
std::vector<std::uint32_t> every_root(const std::vector<std::uint32_t>& candidates) {
  const auto step =
      std::max<std::size_t>(1, static_cast<std::size_t>(std::sqrt(candidates.size())));
  std::vector<std::uint32_t> kept;
  for (std::size_t i = step - 1; i < candidates.size(); i += step)
    kept.push_back(candidates[i]);
  return kept;
}

/// Selects a candidate whenever the operators since the last one make more than `most` bytes.
std::vector<std::uint32_t> by_bytes(const RecomputeProblem& problem, const Segments& segments,
                                    bool articulation, std::int64_t most) {
  const std::vector<std::uint32_t>& allowed = segments.candidates(articulation);
  std::vector<std::uint32_t> kept;
  std::int64_t sum = 0;
  auto next = allowed.begin();
  for (const std::uint32_t i : segments.candidates(false)) {
    sum += problem.written_bytes(i);
    if (next == allowed.end() || *next != i)
      continue;
    ++next;
    if (sum <= most)
      continue;
    kept.push_back(i);
    sum = 0;
  }
  return kept;
}

void keep_best(const RecomputeProblem& problem, std::int64_t budget, RecomputePlan plan,
               HeuristicPlan& best, std::int64_t& min_peak) {
  RecomputeOutcome outcome = replay(problem, plan);
  min_peak = std::min(min_peak, outcome.peak_bytes);
  if (outcome.peak_bytes > budget || (best.plan && best.outcome.cost <= outcome.cost))
    return;
  best.plan = std::move(plan);
  best.outcome = std::move(outcome);
}

HeuristicPlan chen(const RecomputeProblem& problem, std::int64_t budget, bool greedy,
                   const SearchControl& control) {
  Segments segments(problem);
  HeuristicPlan best;
  std::int64_t least = std::numeric_limits<std::int64_t>::max();
  for (const bool articulation : {true, false}) {
    const std::vector<std::uint32_t>& candidates = segments.candidates(articulation);
    if (!greedy) {
      keep_best(problem, budget, segments.plan(every_root(candidates)), best, least);
      continue;
    }
    // Tries thresholds from all bytes down, each 4/5 of the previous one.
    for (std::int64_t most = segments.forward_bytes(); most > 0 && !control.interrupted();
         most = most / 5 * 4) {
      const std::vector<std::uint32_t> kept = by_bytes(problem, segments, articulation, most);
      keep_best(problem, budget, segments.plan(kept), best, least);
      if (kept.size() == candidates.size())
        break;
    }
  }
  if (!best.plan)
    best.why_not = "needs " + std::to_string(least) + " bytes at least";
  return best;
}

} // namespace

std::string_view to_string(RecomputeHeuristic heuristic) {
  constexpr std::array<std::string_view, kRecomputeHeuristics.size()> kNames = {
      "sqrt", "greedy", "dtr", "dtr-local", "msps", "lru", "largest"};
  return kNames[static_cast<std::size_t>(heuristic)];
}

HeuristicPlan run_heuristic(const RecomputeProblem& problem, std::int64_t budget,
                            RecomputeHeuristic heuristic, const SearchControl& control,
                            std::span<const std::uint32_t> released) {
  if (heuristic == RecomputeHeuristic::chen_sqrt || heuristic == RecomputeHeuristic::chen_greedy)
    return chen(problem, budget, heuristic == RecomputeHeuristic::chen_greedy, control);
  return simulate_dtr(problem, budget, heuristic, control, released);
}

} // namespace monet

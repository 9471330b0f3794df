// RecomputeProblem: rematerialisation of operators in a given order, with the buffers that they
// read and write. A budget limits the bytes that are live at any time. Dropped buffers are
// recomputed by running their operators again.
// Example:
//   std::optional<RecomputePlan> plan_in_half_the_memory(const RecomputeProblem& problem) {
//     const RecomputeOutcome stored = replay(problem, store_everything(problem));
//     return run_heuristic(problem, stored.peak_bytes / 2, RecomputeHeuristic::dtr).plan;
//   }
#pragma once

#include "monet/optimise/search.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace monet {

/// A step to rematerialise. Each buffer is written by at most one operator.
struct RecomputeProblem {
  /// A piece of memory that operators read and write.
  struct Buffer {
    std::string name;
    std::int64_t bytes = 0;
    std::optional<std::uint32_t> producer; ///< nullopt: given and always live (weights, data)
    bool kept = false;                     ///< must be live at the end
  };
  /// An operator, which may run several times.
  struct Op {
    std::string name;
    std::int64_t cost = 0;    ///< of one run: nanoseconds, cycles or fJ, as the caller chooses
    std::int64_t scratch = 0; ///< bytes that only the run itself needs
    /// Whether the operator may run more than once.
    bool repeatable = true;
    std::vector<std::uint32_t> reads;  ///< indices of buffers, each once
    std::vector<std::uint32_t> writes; ///< indices of buffers
  };
  std::vector<Buffer> buffers;
  std::vector<Op> ops; ///< in the order of their first runs, producers first

  /// Cost of running every operator once.
  std::int64_t base_cost() const;
  /// Size of the buffers that an operator writes, in bytes.
  std::int64_t written_bytes(std::uint32_t op) const;
};

/// Runs of operators, in execution order. Every operator runs at least once, and first runs are in
/// the problem's order. Further runs may be anywhere. A run reads the last written copy of a
/// buffer.
struct RecomputePlan {
  std::vector<std::uint32_t> runs;

  friend bool operator==(const RecomputePlan&, const RecomputePlan&) = default;
};

/// Plan that runs every operator once.
RecomputePlan store_everything(const RecomputeProblem& problem);

/// Figures of a plan. A copy of a buffer lives from the run that writes it to its last reader
/// before the buffer is written again. An unread copy lives during its run only; a kept one lives
/// to the end. During a run, everything that it reads and writes is live.
struct RecomputeOutcome {
  std::int64_t cost = 0;
  std::int64_t peak_bytes = 0;
  std::size_t peak_run = 0;             ///< first run at the peak
  std::vector<std::int64_t> live_bytes; ///< per run
};

/// Computes the figures of a plan. Throws InternalError if the plan is invalid: an operator is
/// missing, out of order, or repeated although it is not repeatable, or it reads a buffer that is
/// not live.
RecomputeOutcome replay(const RecomputeProblem& problem, const RecomputePlan& plan);

/// Checks the invariants of a problem: indices in range, producers before readers, one producer per
/// buffer, no negative numbers. Throws InternalError if one is violated.
void verify(const RecomputeProblem& problem);

/// Lower bound on the peak of every plan: the given buffers, plus the largest of the kept buffers
/// and of each operator's scratch with all other buffers that it reads and writes. Not every
/// problem has a plan with this peak.
std::int64_t peak_bound(const RecomputeProblem& problem);

/// A plan within a budget, with a bound on the cost.
struct RecomputeResult {
  std::optional<RecomputePlan> plan; ///< nullopt: no plan found
  RecomputeOutcome outcome;          ///< of the plan
  double bound = 0;                  ///< no plan within the budget costs less
  bool infeasible = false;           ///< true: no plan is within the budget (proven)
  bool interrupted = false;          ///< a limit ended the search
  std::string method;                ///< method that found the plan
};
/// Checks a result. Throws InternalError if the plan does not match its outcome or beats its bound.
void verify(const RecomputeProblem& problem, const RecomputeResult& found);

/// A published heuristic. Those of Chen et al. select the operators to keep in advance; the others
/// are online and evict buffers when memory is full.
enum class RecomputeHeuristic {
  chen_sqrt, ///< Chen et al. 2016: keeps one operator in sqrt(n)
  /// Chen et al. 2016: keeps an operator whenever a segment's bytes exceed a threshold.
  chen_greedy,
  dtr,       ///< Kirisame et al. 2021: h_DTR, evicted neighbourhood by union-find
  dtr_local, ///< score: cost / (bytes x staleness)
  msps,      ///< score: (cost + cost of evicted ancestors) / bytes
  lru,       ///< evicts the least recently used buffer
  largest,   ///< evicts the largest buffer
};
/// All heuristics, in the order of the enumeration.
inline constexpr std::array kRecomputeHeuristics = {
    RecomputeHeuristic::chen_sqrt, RecomputeHeuristic::chen_greedy, RecomputeHeuristic::dtr,
    RecomputeHeuristic::dtr_local, RecomputeHeuristic::msps,        RecomputeHeuristic::lru,
    RecomputeHeuristic::largest};
/// Name of a heuristic: "sqrt", "greedy", "dtr", "dtr-local", "msps", "lru" or "largest".
std::string_view to_string(RecomputeHeuristic heuristic);

/// Plan of a heuristic and its figures.
struct HeuristicPlan {
  std::optional<RecomputePlan> plan; ///< within the budget; nullopt: no plan
  RecomputeOutcome outcome;
  std::string why_not; ///< reason for a missing plan
};

/// Finds a heuristic's plan within a budget of live bytes.
///
/// Online heuristics (dtr, dtr_local, msps, lru, largest) are simulated run by run. Before an
/// operator runs, its outputs and scratch must fit in addition to the live buffers; outputs of a
/// repeated run must fit in addition to their old copies. An evicted buffer is recomputed when it
/// is read, its inputs first. `released` contains the operator after which the program drops each
/// buffer, which is then evicted at once; empty: after its last reader. Kept buffers are recomputed
/// at the end. The simulation stops if the cost exceeds ten times the base cost.
///
/// Chen's heuristics select among operators before the peak of storing everything. They try both
/// the articulation points, whose output alone is read by later operators, and all operators, and
/// use the better result. A buffer that is not kept is recomputed, its inputs first, when it is
/// first read after the peak, and then stays.
HeuristicPlan run_heuristic(const RecomputeProblem& problem, std::int64_t budget,
                            RecomputeHeuristic heuristic, const SearchControl& control = {},
                            std::span<const std::uint32_t> released = {});

} // namespace monet

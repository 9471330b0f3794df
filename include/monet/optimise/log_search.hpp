// Recomputation in a recorded step: the best plan within one budget, or within each of several
// descending budgets. The results include a bound, and the plans of published heuristics for
// comparison.
// Example:
//   std::optional<RecomputePlan> plan_for(const std::string& path) {
//     const OperatorLog log = read_operator_log(path);
//     return solve_log(log, log.recorded_peak_bytes / 2, {}, {}).found.plan;
//   }
#pragma once

#include "monet/optimise/recompute_problem.hpp"
#include "monet/optimise/search.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace monet {

/// A log as a recomputation problem. It has a buffer per storage and an operator per CALL and
/// MUTATE, in the log's order; all operators may run again. Costs are in nanoseconds. See
/// docs/reference/operator-log.md.
struct OperatorLog {
  RecomputeProblem problem;
  /// Peak of live bytes in the log as recorded: RELEASE frees a storage when its last name is
  /// dropped; constants are never freed.
  std::int64_t recorded_peak_bytes = 0;
  /// Per buffer: the operator after which the program dropped its last name. The number of
  /// operators if it never did, and for given buffers.
  std::vector<std::uint32_t> released;
};

/// Parses a log with one JSON object per line: CONSTANT, MEMORY, CALL, ALIAS, MUTATE, COPY,
/// COPY_FROM, RELEASE and ANNOTATE. Lines before ANNOTATE START are not part of the step; storages
/// that they produce are given if the step uses them. `origin` names the log in messages. Throws
/// InputError with file and line for other lines, unknown names, and sums of bytes or nanoseconds
/// beyond 2^53.
OperatorLog parse_operator_log(std::string_view text, const std::string& origin);
/// Reads a log from a file; see parse_operator_log().
OperatorLog read_operator_log(const std::string& path);

/// Method of the search for a plan.
enum class LogMethod {
  automatic,  ///< search_recompute(), then solve_recompute()
  search,     ///< search_recompute() alone
  heuristics, ///< the best of the heuristics, or a single one
};

/// Options of solve_log() and sweep_log().
struct LogOptions {
  LogMethod method = LogMethod::automatic;
  std::optional<RecomputeHeuristic> only; ///< the only heuristic to run; nullopt: all
};

/// Result for one budget.
struct LogRow {
  /// Budget in bytes.
  std::int64_t budget = 0;
  RecomputeResult found;
  std::vector<HeuristicPlan> heuristics; ///< in the order of kRecomputeHeuristics
  /// Time of the search, in seconds.
  double seconds = 0;

  Certificate certificate() const; ///< on the cost
};

/// Finds the best plan within a budget of live bytes.
LogRow solve_log(const OperatorLog& log, std::int64_t budget, const LogOptions& options,
                 const SearchControl& control);

/// Finds plans for the budgets (steps - 1) / steps, (steps - 2) / steps, ... of the recorded peak,
/// until no plan is found or the budget is below `least`. If `least` is 0, the last row is the
/// minimum budget for which a plan is found with little effort. No plan costs more than a plan for
/// less memory. The result is empty if the first budget has no plan. It is one row without a plan
/// if the search was interrupted before that was known.
std::vector<LogRow> sweep_log(const OperatorLog& log, int steps, std::int64_t least,
                              const LogOptions& options, const SearchControl& control);

} // namespace monet

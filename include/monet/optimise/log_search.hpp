// Recomputation in a recorded step: the best plan within one budget or within each of several that
// fall, with a bound, next to what others' heuristics make of them.
#pragma once

#include "monet/optimise/operator_log.hpp"
#include "monet/optimise/recompute_heuristics.hpp"
#include "monet/optimise/search.hpp"

#include <cstdint>
#include <optional>
#include <vector>

namespace monet {

enum class LogMethod {
  automatic,  ///< the search, then solve_recompute()
  search,     ///< search_recompute() alone
  heuristics, ///< the best of the heuristics, or one of them
};

struct LogOptions {
  LogMethod method = LogMethod::automatic;
  std::optional<RecomputeHeuristic> only; ///< of the heuristics
};

/// What one budget came to.
struct LogRow {
  std::int64_t budget = 0;
  RecomputeResult found;
  std::vector<HeuristicPlan> heuristics; ///< in the order of kRecomputeHeuristics
  double seconds = 0;

  Certificate certificate() const; ///< of the cost
};

LogRow solve_log(const OperatorLog& log, std::int64_t budget, const LogOptions& options,
                 const SearchControl& control);

/// Budgets of (steps - 1) / steps, (steps - 2) / steps, ... of the recorded peak, while plans are
/// found and down to `least`. Where that is 0, at last the least budget that a plan is found for
/// with little effort. No plan costs more than one for less memory. Empty where the first budget
/// has no plan; one row without a plan where the search was cut short before that was known.
std::vector<LogRow> sweep_log(const OperatorLog& log, int steps, std::int64_t least,
                              const LogOptions& options, const SearchControl& control);

} // namespace monet

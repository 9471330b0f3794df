// Searches and bounds plans for recorded operator logs within budgets; the recompute command calls
// it.
#include "monet/optimise/log_search.hpp"

#include "optimise/shared/recompute_exact.hpp"
#include "optimise/shared/recompute_search.hpp"
#include "optimise/shared/window_bound.hpp"

#include <algorithm>
#include <chrono>
#include <limits>
#include <utility>

namespace monet {

namespace {

class LogSearch {
public:
  LogSearch(const OperatorLog& log, const LogOptions& options, const SearchControl& control)
      : log_(log), problem_(log.problem), options_(options), control_(control) {}

  LogRow one(std::int64_t budget) const {
    LogRow row = solve(budget, {}, 1);
    prove(row, 1);
    return row;
  }

  std::vector<LogRow> sweep(int steps, std::int64_t least) const {
    const std::int64_t whole = log_.recorded_peak_bytes;
    std::vector<LogRow> rows;
    std::vector<RecomputePlan> starts;
    std::int64_t too_small = peak_bound(problem_) - 1;
    for (int step = steps - 1; step > 0; --step) {
      const std::int64_t budget = whole / steps * step + whole % steps * step / steps;
      if (budget + 1 < least) // percentages are rounded
        break;
      LogRow row = solve(budget, starts, step + 1);
      if (!row.found.plan) {
        too_small = std::max(too_small, budget);
        if (rows.empty() && control_.interrupted())
          return {std::move(row)}; // reports that nothing was found yet
        break;
      }
      starts.assign(1, *row.found.plan);
      rows.push_back(std::move(row));
    }
    if (rows.empty())
      return rows;
    if (least == 0)
      add_least(rows, too_small);
    make_monotone(rows);
    // Every budget has a plan before the first proof, which may use all remaining time.
    for (std::size_t i = 0; i < rows.size(); ++i)
      prove(rows[i], static_cast<int>(rows.size() - i));
    make_monotone(rows);
    return rows;
  }

private:
  using Clock = std::chrono::steady_clock;
  static double seconds_since(Clock::time_point begin) {
    return std::chrono::duration<double>(Clock::now() - begin).count();
  }

  /// `parts`: number of budgets that share the remaining time.
  LogRow solve(std::int64_t budget, const std::vector<RecomputePlan>& starts, int parts) const {
    const Clock::time_point begin = Clock::now();
    LogRow row;
    row.budget = budget;
    for (const RecomputeHeuristic heuristic : kRecomputeHeuristics)
      row.heuristics.push_back(run_heuristic(problem_, budget, heuristic, control_, log_.released));
    RecomputeSearchOptions options;
    options.starts = starts;
    const WindowBound quick = window_bound(problem_, budget, control_);
    if (quick.infeasible) {
      row.found.infeasible = true;
      row.found.bound = std::numeric_limits<double>::infinity();
      return row;
    }
    options.bound = static_cast<double>(quick.cost);
    if (options_.method == LogMethod::heuristics) {
      take_heuristic(row);
    } else {
      for (const HeuristicPlan& plan : row.heuristics)
        if (plan.plan)
          options.starts.push_back(*plan.plan);
      const bool alone = options_.method == LogMethod::search;
      row.found =
          search_recompute(problem_, budget, options, control_.share(alone ? parts : 2 * parts));
    }
    row.seconds = seconds_since(begin);
    return row;
  }

  /// Bounds the plan and improves it if possible.
  void prove(LogRow& row, int parts) const {
    if (options_.method != LogMethod::automatic || row.certificate().gap() <= 0)
      return;
    const Clock::time_point begin = Clock::now();
    RecomputeExactOptions options;
    if (row.found.plan)
      options.starts.push_back(*row.found.plan);
    RecomputeResult exact = solve_recompute(problem_, row.budget, control_.share(parts), options);
    exact.bound = std::max(exact.bound, row.found.bound);
    exact.interrupted = exact.interrupted || row.found.interrupted;
    if (!exact.plan || (row.found.plan && exact.outcome.cost >= row.found.outcome.cost)) {
      exact.plan = std::move(row.found.plan);
      exact.outcome = std::move(row.found.outcome);
      exact.method = std::move(row.found.method);
    }
    row.found = std::move(exact);
    row.seconds += seconds_since(begin);
  }

  /// Stores the result of the requested heuristic, or of the best.
  void take_heuristic(LogRow& row) const {
    row.found.bound = static_cast<double>(problem_.base_cost());
    row.found.infeasible = row.budget < peak_bound(problem_);
    for (std::size_t i = 0; i < row.heuristics.size(); ++i) {
      const HeuristicPlan& plan = row.heuristics[i];
      if (!plan.plan || (options_.only && *options_.only != kRecomputeHeuristics[i]) ||
          (row.found.plan && plan.outcome.cost >= row.found.outcome.cost))
        continue;
      row.found.plan = plan.plan;
      row.found.outcome = plan.outcome;
      row.found.method = to_string(kRecomputeHeuristics[i]);
    }
  }

  /// Finds the minimum budget with a plan at low effort, then solves it at full effort.
  void add_least(std::vector<LogRow>& rows, std::int64_t too_small) const {
    const RecomputePlan plan =
        least_memory_plan(problem_, *rows.back().found.plan, too_small, control_);
    const std::int64_t enough = replay(problem_, plan).peak_bytes;
    if (enough == rows.back().found.outcome.peak_bytes || control_.interrupted())
      return;
    constexpr int kParts = 4; // leaves time for proofs
    LogRow row = solve(enough, {plan}, kParts);
    if (row.found.plan)
      rows.push_back(std::move(row));
  }

  /// Makes rows consistent: a plan for less memory fits more, and a bound for more memory holds for
  /// less.
  static void make_monotone(std::vector<LogRow>& rows) {
    for (std::size_t i = rows.size() - 1; i > 0; --i) {
      if (rows[i].found.outcome.cost >= rows[i - 1].found.outcome.cost)
        continue;
      rows[i - 1].found.plan = rows[i].found.plan;
      rows[i - 1].found.outcome = rows[i].found.outcome;
      rows[i - 1].found.method = rows[i].found.method;
    }
    for (std::size_t i = 1; i < rows.size(); ++i)
      rows[i].found.bound = std::max(rows[i].found.bound, rows[i - 1].found.bound);
  }

  const OperatorLog& log_;
  const RecomputeProblem& problem_;
  const LogOptions& options_;
  const SearchControl& control_;
};

} // namespace

Certificate LogRow::certificate() const {
  Certificate result;
  if (found.plan)
    result.best = static_cast<double>(found.outcome.cost);
  result.bound = found.bound;
  result.interrupted = found.interrupted && result.gap() > 0;
  return result;
}

LogRow solve_log(const OperatorLog& log, std::int64_t budget, const LogOptions& options,
                 const SearchControl& control) {
  return LogSearch(log, options, control).one(budget);
}

std::vector<LogRow> sweep_log(const OperatorLog& log, int steps, std::int64_t least,
                              const LogOptions& options, const SearchControl& control) {
  return LogSearch(log, options, control).sweep(steps, least);
}

} // namespace monet

// Finds the minimum memory with a plan by bisection between an infeasible and a sufficient budget;
// adds it to the rows of budgets.
#include "optimise/shared/recompute_search.hpp"

#include "monet/base/errors.hpp"
#include "monet/optimise/checkpoint_search.hpp"

#include <algorithm>
#include <utility>

namespace monet {

namespace {

/// Bisects. `enough_at(budget)`: memory of a plan found for the budget, or nothing.
template <class EnoughAt>
void halve(std::int64_t too_small, std::int64_t enough, int steps, const SearchControl& control,
           EnoughAt&& enough_at) {
  for (int i = 0; i < steps && too_small + 1 < enough && !control.interrupted(); ++i) {
    const std::int64_t middle = too_small + (enough - too_small) / 2;
    if (const std::optional<std::int64_t> found = enough_at(middle))
      enough = *found;
    else
      too_small = middle;
  }
}

/// Adds the row of minimum memory; all rows but the last have plans.
void add_least(const CheckpointSpace& space, std::span<const std::int64_t> second,
               CheckpointOptions options, const SearchControl& control,
               std::vector<CheckpointRow>& rows) {
  constexpr int kHalvings = 5;
  CheckpointRow least = rows[rows.size() - 2];
  options.effort /= 4;
  halve(rows.back().budget, least.budget, kHalvings, control,
        [&](std::int64_t budget) -> std::optional<std::int64_t> {
          options.starts.assign(1, *least.result.plan);
          RecomputeResult found = checkpoint_front(space, {&budget, 1}, options, control).front();
          if (!found.plan)
            return std::nullopt;
          const CheckpointPoint point = evaluate(space, *found.plan, second);
          found.bound = std::max(found.bound, least.result.bound);
          least = {point.memory(options.memory), std::move(found), point};
          return least.budget;
        });
  if (least.budget >= rows[rows.size() - 2].budget)
    return;
  for (CheckpointRow& row : rows) { // a plan for less memory also fits more
    if (!row.point || row.point->cost <= least.point->cost)
      continue;
    row.result.plan = least.result.plan;
    row.result.outcome = least.result.outcome;
    row.result.method = least.result.method;
    row.point = least.point;
  }
  rows.insert(rows.end() - 1, std::move(least));
}

} // namespace

std::vector<CheckpointRow> checkpoint_rows(const CheckpointSpace& space,
                                           std::span<const std::int64_t> second,
                                           std::span<const std::int64_t> budgets,
                                           const CheckpointOptions& options, bool to_the_least,
                                           const SearchControl& control) {
  std::vector<CheckpointRow> rows;
  std::vector<RecomputeResult> results = checkpoint_front(space, budgets, options, control);
  for (std::size_t i = 0; i < budgets.size(); ++i) {
    CheckpointRow row{budgets[i], std::move(results[i]), std::nullopt};
    if (row.result.plan)
      row.point = evaluate(space, *row.result.plan, second);
    rows.push_back(std::move(row));
  }
  if (to_the_least && rows.size() > 1 && !rows.back().point && !rows.back().result.infeasible &&
      rows[rows.size() - 2].point)
    add_least(space, second, options, control, rows);
  return rows;
}

void verify(const CheckpointSpace& space, CheckpointMemory memory, const CheckpointRow& row) {
  verify(space.problem, row.result);
  internal_check(row.result.plan.has_value() == row.point.has_value(), "a plan without figures");
  internal_check(!row.point || row.point->memory(memory) <= row.budget,
                 "a plan needs more than its budget");
}

RecomputePlan least_memory_plan(const RecomputeProblem& problem, RecomputePlan plan,
                                std::int64_t too_small, const SearchControl& control) {
  constexpr int kSteps = 6;
  RecomputeSearchOptions options;
  options.rounds = 0;
  halve(too_small, replay(problem, plan).peak_bytes, kSteps, control,
        [&](std::int64_t budget) -> std::optional<std::int64_t> {
          options.starts.assign(1, plan);
          RecomputeResult found =
              search_recompute(problem, budget, options, control.share(2 * kSteps));
          if (!found.plan)
            return std::nullopt;
          plan = std::move(*found.plan);
          return found.outcome.peak_bytes;
        });
  return plan;
}

} // namespace monet

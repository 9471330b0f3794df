// The original study's genetic choice of recomputed activations, and exact plans that dominate it;
// the checkpoint search and its comparisons use it.
#include "base/shared/checked.hpp"
#include "optimise/shared/nsga2.hpp"

#include "monet/base/errors.hpp"
#include "monet/optimise/checkpoint_search.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

namespace monet {

namespace {

/// Settings of the study: binomial crossover, and bits flipped in a tenth of the children.
constexpr double kCrossover = 0.9;
constexpr double kMutation = 0.1;

/// Stored activations that can be recomputed; one gene each.
std::vector<std::uint32_t> droppable(const CheckpointSpace& space) {
  std::vector<std::uint32_t> buffers;
  for (std::uint32_t b = 0; b < space.needed.size(); ++b) {
    const auto producer = space.problem.buffers[b].producer;
    if (space.needed[b] != 0 && producer && space.problem.ops[*producer].repeatable)
      buffers.push_back(b);
  }
  return buffers;
}

std::optional<CheckpointPoint> decode(const CheckpointSpace& space,
                                      std::span<const std::uint32_t> buffers,
                                      std::span<const std::uint8_t> dropped,
                                      std::span<const std::int64_t> second) {
  std::vector<std::uint8_t> stored = space.needed;
  for (std::size_t i = 0; i < buffers.size(); ++i)
    stored[buffers[i]] = dropped[i] != 0 ? 0 : 1;
  std::optional<RecomputePlan> plan = plan_storing(space, stored);
  if (!plan)
    return std::nullopt;
  return evaluate(space, std::move(*plan), second);
}

} // namespace

CheckpointPoint evaluate(const CheckpointSpace& space, RecomputePlan plan,
                         std::span<const std::int64_t> second) {
  const RecomputeOutcome outcome = replay(space.problem, plan);
  CheckpointPoint point;
  point.cost = outcome.cost;
  point.peak_bytes = outcome.peak_bytes;
  point.stored_bytes = stored_bytes(space, plan);
  if (!second.empty()) {
    internal_check(second.size() == space.problem.ops.size(), "one cost for each operator");
    for (const std::uint32_t run : plan.runs)
      point.second = checked_add(point.second, second[run]);
  }
  point.plan = std::move(plan);
  return point;
}

std::vector<CheckpointPoint> genetic_checkpoints(const CheckpointSpace& space,
                                                 std::span<const std::int64_t> second,
                                                 CheckpointMemory memory,
                                                 const GeneticSettings& settings,
                                                 const SearchControl& control) {
  const std::vector<std::uint32_t> buffers = droppable(space);
  Nsga2Problem problem;
  problem.shape.bits = static_cast<std::uint32_t>(buffers.size());
  problem.objectives = 3;
  problem.evaluate = [&](const Genome& genome) -> Evaluation {
    const auto point = decode(space, buffers, genome.bits, second);
    if (!point)
      return {{}, 1.0};
    return {{static_cast<double>(point->cost), static_cast<double>(point->second),
             static_cast<double>(point->memory(memory))},
            0.0};
  };
  Nsga2Options options;
  options.population = settings.population;
  options.generations = settings.generations;
  options.crossover = kCrossover;
  options.mutation = kMutation;
  const Nsga2Result found = nsga2(problem, options, control);
  std::vector<CheckpointPoint> points;
  for (const Individual& individual : found.front) {
    if (auto point = decode(space, buffers, individual.genome.bits, second); point)
      points.push_back(std::move(*point));
  }
  return points;
}

namespace {

bool no_worse(const CheckpointPoint& a, const CheckpointPoint& b, CheckpointMemory memory) {
  return a.cost <= b.cost && a.second <= b.second && a.memory(memory) <= b.memory(memory);
}

DominatingPoint dominate_stored(const CheckpointSpace& space, std::span<const std::int64_t> second,
                                const CheckpointPoint& point, const SearchControl& control) {
  StoredOptions options{.limit = CostLimit{second, point.second}, .start = &point.plan};
  const RecomputeResult found = solve_stored(space, point.stored_bytes, control, options);
  DominatingPoint best{point, std::min(found.bound, static_cast<double>(point.cost))};
  if (found.plan && found.outcome.cost <= point.cost)
    best.point = evaluate(space, *found.plan, second);
  return best;
}

/// Copy of the space with other costs.
CheckpointSpace with_costs(const CheckpointSpace& space, std::span<const std::int64_t> costs) {
  CheckpointSpace other = space;
  for (std::size_t i = 0; i < costs.size(); ++i)
    other.problem.ops[i].cost = costs[i];
  return other;
}

/// At most kPeaks of the points' peaks in falling order, with the largest and the smallest.
std::vector<std::int64_t> some_peaks(std::span<const CheckpointPoint> points) {
  constexpr std::size_t kPeaks = 6;
  std::vector<std::int64_t> all;
  for (const CheckpointPoint& point : points)
    all.push_back(point.peak_bytes);
  std::sort(all.rbegin(), all.rend());
  all.erase(std::unique(all.begin(), all.end()), all.end());
  if (all.size() <= kPeaks)
    return all;
  std::vector<std::int64_t> some;
  for (std::size_t k = 0; k < kPeaks; ++k)
    some.push_back(all[(all.size() - 1) * k / (kPeaks - 1)]);
  return some;
}

/// Minimises both costs at a few peaks and pairs the results with the points.
std::vector<DominatingPoint> dominate_peaks(const CheckpointSpace& space,
                                            std::span<const std::int64_t> second,
                                            std::span<const CheckpointPoint> points,
                                            const SearchControl& control) {
  const std::vector<std::int64_t> budgets = some_peaks(points);
  CheckpointOptions options;
  for (const CheckpointPoint& point : points)
    options.starts.push_back(point.plan);
  const auto cheap = checkpoint_front(space, budgets, options, control);
  const auto other = checkpoint_front(with_costs(space, second), budgets, options, control);
  std::vector<CheckpointPoint> pool;
  for (const CheckpointPoint& point : points)
    pool.push_back(evaluate(space, without_idle_runs(space.problem, point.plan), second));
  for (const auto* front : {&cheap, &other}) {
    for (const RecomputeResult& result : *front) {
      if (result.plan)
        pool.push_back(evaluate(space, *result.plan, second));
    }
  }
  std::vector<DominatingPoint> better;
  for (const CheckpointPoint& point : points) {
    DominatingPoint best{point, static_cast<double>(space.problem.base_cost())};
    for (std::size_t k = 0; k < budgets.size(); ++k) {
      if (budgets[k] >= point.peak_bytes) // a bound for more memory holds for less
        best.bound = std::max(best.bound, cheap[k].bound);
    }
    for (const CheckpointPoint& candidate : pool) {
      if (no_worse(candidate, best.point, CheckpointMemory::peak))
        best.point = candidate;
    }
    better.push_back(std::move(best));
  }
  return better;
}

} // namespace

std::vector<DominatingPoint> dominate(const CheckpointSpace& space,
                                      std::span<const std::int64_t> second,
                                      std::span<const CheckpointPoint> points,
                                      CheckpointMemory memory, const SearchControl& control) {
  if (memory == CheckpointMemory::peak)
    return dominate_peaks(space, second, points, control);
  // One exact point may dominate several, so the smallest memory is solved first.
  std::vector<std::size_t> order(points.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) {
    return points[a].stored_bytes < points[b].stored_bytes;
  });
  std::vector<DominatingPoint> better(points.size());
  std::vector<CheckpointPoint> found;
  for (std::size_t k = 0; k < order.size(); ++k) {
    control.tell({"checkpointing: dominating plans", static_cast<std::int64_t>(k),
                  static_cast<std::int64_t>(order.size())});
    const CheckpointPoint& point = points[order[k]];
    const auto known = std::ranges::find_if(
        found, [&](const CheckpointPoint& exact) { return no_worse(exact, point, memory); });
    if (known != found.end()) {
      better[order[k]] = {*known, static_cast<double>(space.problem.base_cost())};
      continue;
    }
    better[order[k]] = dominate_stored(space, second, point, control);
    found.push_back(better[order[k]].point);
  }
  return better;
}

} // namespace monet

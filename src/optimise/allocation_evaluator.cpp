#include "monet/base/errors.hpp"
#include "monet/base/parallel.hpp"
#include "monet/optimise/allocation.hpp"
#include "monet/optimise/pareto.hpp"
#include "monet/training/liveness.hpp"

#include <algorithm>
#include <limits>

namespace monet {

std::optional<AllocationObjective> allocation_objective_named(std::string_view name) {
  constexpr std::pair<std::string_view, AllocationObjective> kNames[] = {
      {"latency", AllocationObjective::latency},
      {"energy", AllocationObjective::energy},
      {"edp", AllocationObjective::edp},
      {"memory", AllocationObjective::memory}};
  for (const auto& [known, objective] : kNames) {
    if (known == name)
      return objective;
  }
  return std::nullopt;
}

double value_of(const AllocationCost& cost, AllocationObjective objective) {
  if (!cost.feasible)
    return std::numeric_limits<double>::infinity();
  switch (objective) {
  case AllocationObjective::latency:
    return static_cast<double>(cost.latency.value);
  case AllocationObjective::energy:
    return cost.energy.picojoules().value;
  case AllocationObjective::edp:
    return cost.energy.picojoules().value * static_cast<double>(cost.latency.value);
  case AllocationObjective::memory:
    break;
  }
  return static_cast<double>(cost.peak_bytes);
}

std::vector<double> objectives_of(const AllocationCost& cost) {
  return {static_cast<double>(cost.latency.value), cost.energy.picojoules().value,
          static_cast<double>(cost.peak_bytes)};
}

AllocationEvaluator::AllocationEvaluator(const TrainingGraph& step, const Chip& chip,
                                         const TilingOptions& tiling,
                                         const ScheduleOptions& schedule,
                                         const AllocationLimits& limits)
    : step_(step), chip_(chip), planner_(step, chip, tiling),
      scheduler_(step, chip, costs_, schedule),
      choices_(allocation_choices(step, chip, planner_, limits)) {
  const CoreAllocation automatic = allocation_of(planner_.tiles({}));
  const bool any_given = !planner_.given().empty();
  const CoreAllocation given =
      any_given ? allocation_of(planner_.tiles(planner_.given())) : automatic;
  for (std::size_t op = 0; op < choices_.size(); ++op) {
    auto& of_op = choices_[op];
    std::erase(of_op, automatic[op]);
    of_op.insert(of_op.begin(), automatic[op]);
    auto found = std::find(of_op.begin(), of_op.end(), given[op]);
    if (found == of_op.end())
      found = of_op.insert(found, given[op]);
    given_.push_back(static_cast<std::uint32_t>(found - of_op.begin()));
  }
}

double AllocationEvaluator::plans() const {
  double count = 1;
  for (const auto& of_op : choices_)
    count *= static_cast<double>(of_op.size());
  return count;
}

CoreAllocation AllocationEvaluator::allocation(const AllocationPlan& plan) const {
  internal_check(plan.size() == choices_.size(), "a plan has a choice for every operator");
  CoreAllocation allocation;
  allocation.reserve(plan.size());
  for (std::size_t op = 0; op < plan.size(); ++op)
    allocation.push_back(choices_[op].at(plan[op]));
  return allocation;
}

AllocationCost AllocationEvaluator::schedule(const AllocationPlan& plan) {
  try {
    const Timeline timeline = scheduler_.schedule(tiles(plan));
    return {timeline.makespan, energy_of(timeline).total(), total(timeline.peak.live), true};
  } catch (const InfeasibleError&) {
    return {};
  }
}

AllocationCost AllocationEvaluator::evaluate(const AllocationPlan& plan) {
  {
    const std::lock_guard lock(mutex_);
    const auto found = known_.find(plan);
    if (found != known_.end())
      return found->second;
  }
  const AllocationCost cost = schedule(plan);
  const std::lock_guard lock(mutex_);
  return known_.emplace(plan, cost).first->second;
}

std::vector<std::optional<AllocationCost>>
AllocationEvaluator::evaluate(std::span<const AllocationPlan> plans, const SearchControl& control) {
  std::vector<std::optional<AllocationCost>> costs(plans.size());
  parallel_for(plans.size(), control.jobs, [&](std::size_t i) {
    if (!control.interrupted())
      costs[i] = evaluate(plans[i]);
  });
  return costs;
}

std::vector<AllocationPoint> AllocationEvaluator::front() const {
  const std::lock_guard lock(mutex_);
  std::vector<Objectives> points;
  std::vector<std::map<AllocationPlan, AllocationCost>::const_iterator> of;
  for (auto known = known_.begin(); known != known_.end(); ++known) {
    if (!known->second.feasible)
      continue;
    points.push_back(objectives_of(known->second));
    of.push_back(known);
  }
  std::vector<AllocationPoint> front;
  for (const std::size_t i : non_dominated(points))
    front.push_back({of[i]->first, of[i]->second});
  return front;
}

bool AllocationEvaluator::known(const AllocationPlan& plan) const {
  const std::lock_guard lock(mutex_);
  return known_.count(plan) > 0;
}

std::size_t AllocationEvaluator::evaluations() const {
  const std::lock_guard lock(mutex_);
  return known_.size();
}

} // namespace monet

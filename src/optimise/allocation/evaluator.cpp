// Lists each operator's core choices, and tiles and schedules allocation plans; the allocation
// search and its bounds use it.
#include "base/shared/parallel.hpp"
#include "base/shared/pareto.hpp"

#include "monet/base/errors.hpp"
#include "monet/base/stop.hpp"
#include "monet/optimise/allocation.hpp"

#include <algorithm>

namespace monet {

std::vector<double> objectives_of(const StepFigures& cost) {
  return {cost.value(Objective::latency), cost.value(Objective::energy),
          cost.value(Objective::memory)};
}

namespace {

bool leaves_cores_idle(const TilingOptions& tiling) {
  return std::ranges::find(tiling.idle, true) != tiling.idle.end();
}

/// Tiling options with equal groups and slices in which every operator may use all cores.
TilingOptions on_all_cores(const TrainingGraph& step, const Chip& chip,
                           const TilingOptions& tiling) {
  TilingOptions all = tiling;
  if (leaves_cores_idle(tiling) && tiling.mode == TilingMode::fused)
    all = tiling.with(automatic_fusion(step, chip, tiling));
  all.idle.clear();
  return all;
}

/// Allocation that make_tiles() chooses without a plan.
CoreAllocation automatic_allocation(const TrainingGraph& step, const Chip& chip,
                                    const TilingOptions& tiling, const TilePlanner& planner) {
  return leaves_cores_idle(tiling) ? allocation_of(TilePlanner(step, chip, tiling).tiles({}))
                                   : allocation_of(planner.tiles({}));
}

} // namespace

AllocationEvaluator::AllocationEvaluator(const TrainingGraph& step, const Chip& chip,
                                         const TilingOptions& tiling,
                                         const ScheduleOptions& schedule,
                                         const AllocationLimits& limits)
    : step_(step), chip_(chip), options_{on_all_cores(step, chip, tiling), schedule, {}},
      planner_(step, chip, options_.tiling),
      tile_costs_(step, chip, costs_, schedule.core_cost, schedule.jobs),
      choices_(allocation_choices(step, chip, planner_, limits)) {
  options_.tiling.allocation = nullptr;
  const CoreAllocation automatic = automatic_allocation(step, chip, tiling, planner_);
  const bool any_given = !planner_.given().empty();
  const CoreAllocation given =
      any_given ? allocation_of(planner_.tiles(planner_.given())) : automatic;
  for (std::size_t op = 0; op < choices_.size(); ++op) {
    auto& of_op = choices_[op];
    std::erase(of_op, automatic[op]);
    of_op.insert(of_op.begin(), automatic[op]);
    auto found = std::ranges::find(of_op, given[op]);
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

ModelledStep AllocationEvaluator::model(const AllocationPlan& plan) {
  const CoreAllocation chosen = allocation(plan);
  StepOptions options = options_;
  options.tiling.allocation = &chosen;
  return model_step(step_, chip_, options, {costs_, nullptr, &tile_costs_, &planner_});
}

StepFigures AllocationEvaluator::evaluate(const AllocationPlan& plan) {
  {
    const std::lock_guard lock(mutex_);
    if (const auto found = known_.find(plan); found != known_.end())
      return found->second;
  }
  StepFigures cost;
  try {
    cost = model(plan).figures;
  } catch (const InfeasibleError&) {
    cost.feasible = false;
  }
  const std::lock_guard lock(mutex_);
  return known_.emplace(plan, cost).first->second;
}

std::vector<std::optional<StepFigures>>
AllocationEvaluator::evaluate(std::span<const AllocationPlan> plans, const SearchControl& control) {
  std::vector<std::optional<StepFigures>> costs(plans.size());
  parallel_for(plans.size(), control.jobs, [&](std::size_t i) {
    if (!control.interrupted())
      control.finishes([&] { costs[i] = evaluate(plans[i]); });
  });
  return costs;
}

std::vector<AllocationPoint> AllocationEvaluator::front() const {
  const std::lock_guard lock(mutex_);
  std::vector<Objectives> points;
  std::vector<std::map<AllocationPlan, StepFigures>::const_iterator> of;
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

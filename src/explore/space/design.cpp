// Extracts objective values and metrics from results and bounds of designs. Strategies and reports
// call this.
#include "base/shared/pareto.hpp"

#include "monet/base/errors.hpp"
#include "monet/explore/space.hpp"

#include <algorithm>

namespace monet {

namespace {

template <class Design>
double metric_of(const Design& design, std::string_view name) {
  const auto metric = std::ranges::find(design.metrics, name, &Metric::name);
  if (metric == design.metrics.end())
    throw InternalError("a front of a metric that the design does not have");
  return metric->value;
}

template <class Design>
std::vector<double> values_of(const Design& design, const FrontRequest& front) {
  if (front.run >= design.runs.size())
    throw InternalError("a front of a run that the design does not have");
  const StepFigures& run = design.runs[front.run];
  std::vector<double> values;
  values.reserve(front.objectives.size());
  for (const Objective objective : front.objectives) {
    if (objective == Objective::error)
      values.push_back(metric_of(design, name_of(objective)));
    else if (objective == Objective::area)
      values.push_back(design.area_mm2);
    else if (objective == Objective::power)
      values.push_back(design.peak_power_w);
    else if (objective == Objective::latency && design.frequency_hz > 0)
      values.push_back(run.value(objective) / design.frequency_hz);
    else
      values.push_back(run.value(objective));
  }
  return values;
}

} // namespace

std::vector<double> objective_values(const DesignResult& result, const FrontRequest& front) {
  return values_of(result, front);
}

std::vector<double> objective_values(const DesignBound& bound, const FrontRequest& front) {
  return values_of(bound, front);
}

std::vector<DesignId> front_of(std::span<const DesignResult> results, const FrontRequest& front) {
  std::vector<const DesignResult*> feasible;
  for (const DesignResult& result : results) {
    if (result.feasible)
      feasible.push_back(&result);
  }
  const auto by_id = [](const DesignResult* a, const DesignResult* b) { return a->id < b->id; };
  if (!std::ranges::is_sorted(feasible, by_id))
    std::ranges::sort(feasible, by_id);
  std::vector<Objectives> points;
  for (const DesignResult* result : feasible)
    points.push_back(objective_values(*result, front));
  std::vector<DesignId> ids;
  for (const std::size_t i : non_dominated(points, Equals::all))
    ids.push_back(feasible[i]->id);
  return ids;
}

} // namespace monet

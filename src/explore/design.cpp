#include "monet/explore/design.hpp"

#include "monet/base/errors.hpp"

namespace monet {

std::string_view name_of(DesignObjective objective) {
  switch (objective) {
  case DesignObjective::latency:
    return "latency";
  case DesignObjective::energy:
    return "energy";
  case DesignObjective::memory:
    return "memory";
  case DesignObjective::area:
    return "area";
  case DesignObjective::power:
    return "power";
  }
  throw InternalError("an objective without a name");
}

namespace {

template <class Design>
std::vector<double> values_of(const Design& design, const FrontRequest& front) {
  if (front.run >= design.runs.size())
    throw InternalError("a front of a run that the design does not have");
  const RunFigures& run = design.runs[front.run];
  std::vector<double> values;
  values.reserve(front.objectives.size());
  for (const DesignObjective objective : front.objectives) {
    switch (objective) {
    case DesignObjective::latency: {
      const double cycles = static_cast<double>(run.latency_cycles);
      values.push_back(design.frequency_hz > 0 ? cycles / design.frequency_hz : cycles);
      break;
    }
    case DesignObjective::energy:
      values.push_back(run.energy_pj);
      break;
    case DesignObjective::memory:
      values.push_back(static_cast<double>(run.peak_memory_bytes));
      break;
    case DesignObjective::area:
      values.push_back(design.area_mm2);
      break;
    case DesignObjective::power:
      values.push_back(design.peak_power_w);
      break;
    }
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

} // namespace monet

#include "monet/optimise/step_objective.hpp"

#include "monet/base/errors.hpp"

namespace monet {

std::string_view name_of(StepObjective objective) {
  switch (objective) {
  case StepObjective::latency:
    return "latency";
  case StepObjective::energy:
    return "energy";
  case StepObjective::edp:
    return "edp";
  case StepObjective::dram:
    return "dram";
  }
  throw InternalError("objective without a name");
}

std::optional<StepObjective> step_objective_named(std::string_view name) {
  for (const StepObjective objective :
       {StepObjective::latency, StepObjective::energy, StepObjective::edp, StepObjective::dram}) {
    if (name_of(objective) == name)
      return objective;
  }
  return std::nullopt;
}

double value_of(StepObjective objective, std::int64_t latency_cycles, double energy_pj,
                std::int64_t offchip_bits) {
  switch (objective) {
  case StepObjective::latency:
    return static_cast<double>(latency_cycles);
  case StepObjective::energy:
    return energy_pj;
  case StepObjective::edp:
    return energy_pj * static_cast<double>(latency_cycles);
  case StepObjective::dram:
    return static_cast<double>(offchip_bits);
  }
  throw InternalError("unknown objective");
}

} // namespace monet

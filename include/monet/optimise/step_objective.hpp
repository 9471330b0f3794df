// What searches for ways to run a step minimise.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace monet {

enum class StepObjective : std::uint8_t {
  latency, ///< cycles
  energy,  ///< pJ
  edp,     ///< pJ x cycles
  dram,    ///< bits that the off-chip memory is read and written
};
std::string_view name_of(StepObjective objective);
/// The objective of that name ("edp"), or nullopt.
std::optional<StepObjective> step_objective_named(std::string_view name);

/// What a step that comes to these figures is worth.
double value_of(StepObjective objective, std::int64_t latency_cycles, double energy_pj,
                std::int64_t offchip_bits);

} // namespace monet

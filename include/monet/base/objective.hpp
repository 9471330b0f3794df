// Objectives that mappings, searches and Pareto fronts minimise.
// Example:
//   Objective objective_of(std::string_view option) {
//     return objective_named(option, kCoreObjectives).value_or(Objective::latency);
//   }
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace monet {

/// An objective to be minimised.
enum class Objective : std::uint8_t {
  latency, ///< cycles, or seconds if a frequency is known
  energy,  ///< pJ
  edp,     ///< pJ x cycles
  dram,    ///< bits read from and written to the off-chip memory
  memory,  ///< peak memory in use, bytes
  area,    ///< area of a chip, mm2
  power,   ///< peak power of a chip, W
  error,   ///< test error of a network trained in a design's formats: share of misclassified images
};

/// Objectives for a mapping on one core, and for the design of a chip.
inline constexpr Objective kCoreObjectives[] = {Objective::latency, Objective::energy,
                                                Objective::edp};
inline constexpr Objective kDesignObjectives[] = {Objective::latency, Objective::energy,
                                                  Objective::memory,  Objective::area,
                                                  Objective::power,   Objective::error};

std::string_view name_of(Objective objective);
/// Objective with this name ("edp") among `among`; nullopt if it is missing.
std::optional<Objective> objective_named(std::string_view name, std::span<const Objective> among);
std::optional<Objective> objective_named(std::string_view name);

} // namespace monet

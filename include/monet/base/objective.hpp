// What mappings, searches and fronts minimise.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace monet {

enum class Objective : std::uint8_t {
  latency, ///< cycles, or seconds where a frequency is known
  energy,  ///< pJ
  edp,     ///< pJ x cycles
  dram,    ///< bits that the off-chip memory is read and written
  memory,  ///< most bytes that live at a time
  area,    ///< mm2, of a chip
  power,   ///< W at the peak, of a chip
  error,   ///< share of images that a network trained in a design's formats takes for another class
};

/// What a mapping on one core can minimise, and what a design of a chip can.
inline constexpr Objective kCoreObjectives[] = {Objective::latency, Objective::energy,
                                                Objective::edp};
inline constexpr Objective kDesignObjectives[] = {Objective::latency, Objective::energy,
                                                  Objective::memory,  Objective::area,
                                                  Objective::power,   Objective::error};

std::string_view name_of(Objective objective);
/// The one of `among` with that name ("edp"), or nullopt.
std::optional<Objective> objective_named(std::string_view name, std::span<const Objective> among);
std::optional<Objective> objective_named(std::string_view name);

} // namespace monet

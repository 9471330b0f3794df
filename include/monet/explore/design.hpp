// A point of a hardware space and what its evaluation came to.
#pragma once

#include "monet/base/stage.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace monet {

/// The number of a design in its space: the indices of its parameters' values as the digits of a
/// mixed-radix number, the first parameter most significant.
using DesignId = std::uint64_t;

/// What one run (inference, a training step) costs on a design.
struct RunFigures {
  std::int64_t latency_cycles = 0;
  double energy_pj = 0;
  std::int64_t peak_memory_bytes = 0;
  friend bool operator==(const RunFigures&, const RunFigures&) = default;
};

/// What an evaluation came to. A design that cannot run, or breaks a budget, is infeasible with a
/// reason; area and power are given as far as a chip could be made.
struct DesignResult {
  DesignId id = 0;
  bool feasible = false;
  std::string reason;           ///< why not; empty when feasible
  double area_mm2 = 0;          ///< of the chip; 0 where its files give no areas
  double peak_power_w = 0;      ///< 0 where no frequency is given
  double frequency_hz = 0;      ///< 0: not given
  std::vector<RunFigures> runs; ///< one per run of the space; empty when infeasible
  friend bool operator==(const DesignResult&, const DesignResult&) = default;
};

/// What no schedule of the design's runs can beat; admissible in each number by itself.
struct DesignBound {
  bool feasible = true; ///< false: shown to be infeasible without evaluation, `reason` says why
  std::string reason;
  double area_mm2 = 0; ///< exact
  double peak_power_w = 0;
  double frequency_hz = 0;
  std::vector<RunFigures> runs; ///< lower bounds; one per run of the space
};

/// What is minimised.
enum class DesignObjective : std::uint8_t { latency, energy, memory, area, power };
inline constexpr std::size_t kDesignObjectives = 5;
std::string_view name_of(DesignObjective objective);

/// One front that is asked for: of one run, in these objectives.
struct FrontRequest {
  std::size_t run = 0;
  std::vector<DesignObjective> objectives; ///< 1 to 4, different
  friend bool operator==(const FrontRequest&, const FrontRequest&) = default;
};

/// The objectives' values, in their order. Latency is in seconds where the design has a frequency,
/// else in cycles. Both take results (feasible ones) and bounds apart.
std::vector<double> objective_values(const DesignResult& result, const FrontRequest& front);
std::vector<double> objective_values(const DesignBound& bound, const FrontRequest& front);

} // namespace monet

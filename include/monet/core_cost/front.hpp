// Alternatives for one tile on one core: mappings that trade latency and energy for room in the
// core's memories.
#pragma once

#include "monet/core_cost/core_cost.hpp"

#include <cstddef>
#include <vector>

namespace monet {

struct FrontOptions {
  /// Operands that may be streamed beside those the problem marks, as indices into
  /// CoreProblem::operands. At most kMostStreamed count.
  std::vector<std::size_t> may_stream;
  /// Room for slices of streamed operands: all that the others leave in a top memory, half of it, a
  /// quarter, ... halved so many times.
  int halvings = 4;
};
inline constexpr std::size_t kMostStreamed = 6;

struct FrontPoint {
  std::vector<bool> streamed; ///< per operand
  double latency = 0;         ///< cycles: the longer of computing and transferring
  double energy = 0;          ///< pJ, with transfers
  Bits footprint; ///< in the core's top memories while it runs: the sum of cost.resident
  CoreCost cost;
};

/// Mappings that no other one found beats in latency, energy and footprint at once, by rising
/// latency, then energy. Tried are all sets of streamed operands and all rooms of the options, and
/// for each all mappings that none beats in latency and energy. Transfers count at
/// CoreCostOptions::offchip. InfeasibleError when nothing fits.
std::vector<FrontPoint> core_cost_front(const CoreProblem& problem, const Core& core,
                                        const CoreCostOptions& options = {},
                                        const FrontOptions& front = {});

} // namespace monet

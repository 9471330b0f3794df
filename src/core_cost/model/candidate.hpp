// One mapping evaluated: spatial unrolling and order of the temporal loops in, energy and latency
// out.
#pragma once

#include "core_cost/model/energy.hpp"

#include <array>
#include <span>

namespace monet::core_cost_detail {

/// Buffers and results of an evaluation. One object serves a whole search: nothing is allocated per
/// candidate.
struct Candidate {
  std::array<Loop, kMaxTemporalLoops> loops{}; ///< in: innermost first
  std::size_t size = 0;                        ///< in: loops used
  Allocation allocation;                       ///< after moving irrelevant loops down
  DataMovement exact{};
  DataMovement truncated{}; ///< only filled when the spatial forms differ
  DoubleBuffered double_buffered{};
  EnergyParts energy;
  LatencyParts latency;

  std::span<const Loop> order() const { return {loops.data(), size}; }
};

/// Evaluates a candidate. False if its order does not fit into the memories; `failure` then holds
/// the reason.
bool evaluate(const NestModel& model, const Hierarchy& hierarchy, const SpatialModel& spatial,
              Candidate& candidate, AllocationFailure* failure = nullptr);

} // namespace monet::core_cost_detail

// Cost of a tile on one core as the reference scheduler Stream (upstream 303f9dc) obtains it from
// ZigZag. Operands too large for the core stay in the off-chip memory, which becomes the topmost
// memory of the core. The mapping keeps tiles that run in parallel within that memory's bandwidth.
// Used by `--model stream-coala`; the default model marks operands as off-chip instead
// (ProblemOperand::offchip).
#pragma once

#include "monet/core_cost/core_cost.hpp"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace monet {

/// One tile with its streamed operands.
struct StreamedProblem {
  /// The tile, with operands in the order of the equation; none is marked off-chip.
  CoreProblem problem;
  /// Operands in the off-chip memory, as indices into problem.operands, in that memory's order.
  std::vector<std::size_t> streamed;
  std::int64_t parallel = 1;             ///< tiles of the layer that run at once
  std::int64_t cycles_per_operation = 1; ///< cycles per multiplication; the mapping is chosen for 1
  /// Spatial mapping for a core without a dataflow, per array dim.
  std::vector<std::vector<Unrolling>> spatial;
};

/// Bits per cycle between the off-chip memory and the core while the tile runs.
struct StreamedRate {
  std::int64_t read = 0;
  std::int64_t write = 0;
};

/// Cost of one tile, with its mapping.
struct StreamedCost {
  double latency = 0;        ///< cycles, including loading and unloading; may be fractional
  double ideal_temporal = 0; ///< cycles of the temporal loops
  double onchip_pj = 0;      ///< multipliers and all memories except the off-chip one
  double offchip_pj = 0;
  std::vector<StreamedRate> rates; ///< rates per operand; zero unless streamed
  SpatialMapping spatial;
  std::vector<MappedLoop> order; ///< temporal loops, innermost first
};

/// Finds the mapping that minimises ceil(used / available off-chip bandwidth) * floor(latency) in
/// ZigZag 3.8's model; ties go to the first in ZigZag's order. The used bandwidth is defined in
/// docs/explanation/stream-coala-costs.md. `offchip` is a core with one memory. Throws
/// InfeasibleError as core_cost().
StreamedCost streamed_cost(const StreamedProblem& problem, const Core& core, const Core& offchip);

/// Memory operands in the iteration order of a ZigZag set into which they were inserted in the
/// given order.
std::vector<MemoryOperand> zigzag_set_order(const std::vector<MemoryOperand>& operands);

} // namespace monet

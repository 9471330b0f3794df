// What the reference scheduler Stream (upstream 303f9dc) learns from ZigZag about one of its tiles
// on one core: operands too large for the core stay in the off-chip memory, which becomes the
// topmost memory of the core, and the mapping is the one that keeps the tiles running side by side
// within that memory's bandwidth. For `--model stream-coala`; the default model marks operands as
// off-chip instead (ProblemOperand::offchip).
#pragma once

#include "monet/core_cost/core_cost.hpp"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace monet {

struct StreamedProblem {
  /// Operands in the order of the equation; none marked off-chip.
  CoreProblem problem;
  /// Operands that stay in the off-chip memory, as indices into problem.operands, in the order in
  /// which that memory lists them.
  std::vector<std::size_t> streamed;
  std::int64_t parallel = 1;             ///< tiles of the layer that run at once
  std::int64_t cycles_per_operation = 1; ///< of the multipliers; the mapping is chosen for 1
  /// Unrolling where the core has no dataflow, per array dim.
  std::vector<std::vector<Unrolling>> spatial;
};

/// Bits per cycle between the off-chip memory and the core while the tile runs.
struct StreamedRate {
  std::int64_t read = 0;
  std::int64_t write = 0;
};

struct StreamedCost {
  double latency = 0;        ///< cycles, with loading and unloading; may be fractional
  double ideal_temporal = 0; ///< cycles of the temporal loops
  double onchip_pj = 0;      ///< multipliers and all memories but the off-chip one
  double offchip_pj = 0;
  std::vector<StreamedRate> rates; ///< per operand; zero unless streamed
  SpatialMapping spatial;
  std::vector<MappedLoop> order; ///< temporal loops, innermost first
};

/// The mapping with the least ceil(used / available off-chip bandwidth) * floor(latency), of equal
/// ones the first in ZigZag's order, in ZigZag 3.8's model. What counts as used is in
/// docs/explanation/stream-coala-costs.md. `offchip` is a core with one
/// memory. InfeasibleError as core_cost().
StreamedCost streamed_cost(const StreamedProblem& problem, const Core& core, const Core& offchip);

/// Memory operands in the order in which ZigZag walks a set of them that was filled in the order
/// given.
std::vector<MemoryOperand> zigzag_set_order(const std::vector<MemoryOperand>& operands);

} // namespace monet

// Input of the core cost model: one operator tile.
#pragma once

#include "monet/hardware/core.hpp"
#include "monet/workload/loop_nest.hpp"

#include <algorithm>
#include <cstdint>
#include <vector>

namespace monet {

/// One operand of a problem. It holds only properties that determine the cost, without tensor
/// names, so that equal problems compare equal whatever their origin.
struct ProblemOperand {
  AccessMode mode = AccessMode::read;
  MemoryOperand memory = MemoryOperand::I1;
  std::vector<AxisExpr> axes;
  std::vector<std::int64_t> extents; ///< sizes of the tensor region, for clipping; one per axis
  std::int64_t bits = 32;            ///< bits per element as stored
  std::int64_t partial_bits = 32;    ///< bits per partial sum (outputs only)
  int passes = 1;
  bool opaque = false;
  /// Whether the operand does not fit in the core's top memory and is streamed from or to the
  /// off-chip memory. An output that stays must fit at partial_bits if the mapping keeps partial
  /// sums in that memory.
  bool offchip = false;

  friend bool operator==(const ProblemOperand&, const ProblemOperand&) = default;
};

/// One operator tile to be costed.
struct CoreProblem {
  ComputeKind compute = ComputeKind::mac;
  std::vector<LoopDim> dims; ///< loops with the sizes of the tile
  std::vector<ProblemOperand> operands;
  VectorWork work;
  std::vector<NestProduct> products; ///< products as in LoopNest::products; indices into `operands`
  /// Bit d is set if loop d goes across blocks that share a scale, see loops_across_blocks().
  std::uint32_t across_blocks = 0;

  friend bool operator==(const CoreProblem&, const CoreProblem&) = default;
};

/// Size of an operand in bits when it is stored whole, with partial sums at their width while
/// running.
std::int64_t footprint(const ProblemOperand& operand);
/// Whether an operand is streamed from or to the off-chip memory.
bool streams(const CoreProblem& problem);

/// Whether an operand of a problem or of a nest is indexed by data.
template <class Operand>
bool looks_up(const Operand& operand) {
  return !operand.opaque && std::ranges::any_of(operand.axes, [](const AxisExpr& axis) {
    return axis.data_dependent;
  });
}

/// Whether the accessed elements of an operand change with the loop.
template <class Operand>
bool moves_with(const Operand& operand, std::size_t dim) {
  return operand.opaque || std::ranges::any_of(operand.axes, [&](const AxisExpr& axis) {
           return has_loop(axis, dim);
         });
}

} // namespace monet

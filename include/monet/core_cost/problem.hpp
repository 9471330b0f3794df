// What is asked of the core cost model: one operator tile.
#pragma once

#include "monet/hardware/core.hpp"
#include "monet/workload/loop_nest.hpp"

#include <algorithm>
#include <cstdint>
#include <vector>

namespace monet {

/// One operand of a problem. Names of tensors are gone: only what decides the cost is left, so that
/// equal problems compare equal wherever they come from.
struct ProblemOperand {
  AccessMode mode = AccessMode::read;
  MemoryOperand memory = MemoryOperand::I1;
  std::vector<AxisExpr> axes;
  std::vector<std::int64_t> extents; ///< of the tensor region, for clipping; same length as axes
  std::int64_t bits = 32;            ///< per element as stored
  std::int64_t partial_bits = 32;    ///< per partial sum (outputs only)
  int passes = 1;
  bool opaque = false;
  /// Does not fit in the core's top memory: streamed from or to the off-chip memory. An output that
  /// stays must fit at partial_bits where the mapping keeps partial sums in that memory.
  bool offchip = false;

  friend bool operator==(const ProblemOperand&, const ProblemOperand&) = default;
};

struct CoreProblem {
  ComputeKind compute = ComputeKind::mac;
  std::vector<LoopDim> dims; ///< sizes of the tile
  std::vector<ProblemOperand> operands;
  VectorWork work;
  std::vector<NestProduct> products; ///< as LoopNest::products; indices into `operands`
  /// Bit d: loop d goes across blocks that share a scale, see loops_across_blocks().
  std::uint32_t across_blocks = 0;

  friend bool operator==(const CoreProblem&, const CoreProblem&) = default;
};

/// Bits the operand takes when it is kept whole, partial sums as wide as they are while running.
std::int64_t footprint(const ProblemOperand& operand);
/// An operand passes by from or to the off-chip memory.
bool streams(const CoreProblem& problem);

/// Whether an operand, of a problem or of a nest, is looked up where data say.
template <class Operand>
bool looks_up(const Operand& operand) {
  return !operand.opaque && std::ranges::any_of(operand.axes, [](const AxisExpr& axis) {
    return axis.data_dependent;
  });
}

/// Whether what is touched of it changes with the loop.
template <class Operand>
bool moves_with(const Operand& operand, std::size_t dim) {
  return operand.opaque || std::ranges::any_of(operand.axes, [&](const AxisExpr& axis) {
           return has_loop(axis, dim);
         });
}

} // namespace monet

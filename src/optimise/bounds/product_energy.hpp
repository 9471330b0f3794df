// Minimum energy of on-chip memories for a product, for any tiling and mapping.
#pragma once

#include "monet/hardware/chip.hpp"
#include "monet/training_graph/training.hpp"

#include <cstdint>
#include <map>
#include <vector>

namespace monet {

/// Operand of a product as the array sees it: its memories and the loops that change it.
struct ArrayOperand {
  MemoryOperand memory = MemoryOperand::O;
  std::int64_t bits = 0;     ///< width at the innermost memory
  std::int64_t min_bits = 0; ///< width in a tile without partial sums
  bool aside = false;        ///< an additional input of a memory operand, in the top memory only
  std::vector<bool> moved_by;
};

/// The result and then the inputs of a nest that is mapped directly; empty for a nest with other
/// forms (scattering, several results).
std::vector<ArrayOperand> array_operands(const TrainingGraph& step, const Operator& op,
                                         const Core& core);

/// Cache of bounds, keyed by all values they depend on.
using ProductMemo = std::map<std::vector<double>, double>;

/// Two lower bounds in pJ for all products of an operator.
struct ProductEnergy {
  double certain = 0; ///< memories that count whole words for any tile size
  double in_all = 0;  ///< all memories, before each tile's rounding loss
  double lost = 0;    ///< maximum rounding loss per tile
};

/// Lower bound for every tiling, unrolling, loop order and memory allocation that core_cost() may
/// choose for the operator's tiles. 0 if the operator's forms are unknown.
ProductEnergy min_product_energy(const TrainingGraph& step, const Operator& op, const Core& core,
                                 ProductMemo& memo);

} // namespace monet

// The least energy of on-chip memories for a product, however it is tiled and mapped.
#pragma once

#include "monet/hardware/chip.hpp"
#include "monet/training_graph/training.hpp"

#include <cstdint>
#include <map>
#include <vector>

namespace monet {

/// An operand of a product as the array sees it: in which memories, and which loops move it.
struct ArrayOperand {
  MemoryOperand memory = MemoryOperand::O;
  std::int64_t bits = 0;     ///< as it passes the innermost memory
  std::int64_t min_bits = 0; ///< the same in a tile that sums nothing up
  bool aside = false;        ///< a further input of one memory operand: in the top memory alone
  std::vector<bool> moved_by;
};

/// The result and then the inputs of a nest that is mapped as it is; none for one that has other
/// forms (scattering, several results).
std::vector<ArrayOperand> array_operands(const TrainingGraph& step, const Operator& op,
                                         const Core& core);

/// Answers to equal questions.
using ProductMemo = std::map<std::vector<double>, double>;

/// Two bounds in pJ for all products of an operator together.
struct ProductEnergy {
  double certain = 0; ///< of memories that count whole words whatever a tile's size
  double in_all = 0;  ///< of all memories, but for what each tile's words lose by rounding down
  double lost = 0;    ///< so much per tile at most
};

/// Holds for every tiling, unrolling, order of loops and allocation of memories that core_cost()
/// may choose for the operator's tiles. 0 where nothing is known of its forms.
ProductEnergy min_product_energy(const TrainingGraph& step, const Operator& op, const Core& core,
                                 ProductMemo& memo);

} // namespace monet

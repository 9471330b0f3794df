// Operand contracts: the count, kinds of numbers, and non-emptiness that an operator requires.
// Relations between shapes are checked when the loop nest is built, or by a row's `check` where the
// nest cannot prove them.
#pragma once

#include "monet/workload/graph.hpp"

#include <vector>

namespace monet {

/// Kinds of numbers that kernels distinguish.
enum class OperandKind {
  real,    ///< is_floating()
  integer, ///< neither real nor a truth value
  truth,   ///< boolean or bit
  whole,   ///< integer or truth
  number,  ///< any of these
  same,    ///< real where the first `number` operand is real, else whole
};

struct OperandContract {
  OperandKind kind = OperandKind::number;
  bool optional = false;
  bool any_count = false;    ///< last of a list: any number of operands like it
  bool may_be_empty = false; ///< sizes and axes may be empty
};

/// Operands of an operator.
struct Contract {
  std::vector<OperandContract> inputs;
  std::vector<OperandContract> outputs;
};

/// Checks an operator's operands; throws InputError with node, operand and expectation. `op` needs
/// no nest.
void check_contract(const Graph& graph, const Operator& op);

} // namespace monet

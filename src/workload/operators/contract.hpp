// What an operator asks of its operands, whoever made it: how many, of which kinds of numbers, and
// none of them empty. Relations between shapes are checked where the loop nest is built, or here
// where it cannot prove them.
#pragma once

#include "monet/workload/graph.hpp"

#include <string_view>
#include <vector>

namespace monet {

/// Kinds of numbers, as a kernel tells them apart.
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
  bool any_count = false;    ///< the last one of a list: from here on all are like this
  bool may_be_empty = false; ///< sizes and axes, of which there may be none
};

/// One row of the table.
struct Contract {
  std::string_view domain;
  std::string_view op_type;
  std::vector<OperandContract> inputs;
  std::vector<OperandContract> outputs;
};

/// The row of an operator, or null where there is none.
const Contract* contract_of(const Operator& op);

/// Throws InputError with the node, the operand and what is expected. `op` needs no nest yet.
void check_contract(const Graph& graph, const Operator& op);

/// What holds between the shapes of an operator's operands where its nest cannot prove it: views,
/// which have no nest, and operands that a nest calls opaque or reads beyond their edges. Throws
/// InputError with the node and what is expected. The operator's contract holds already, and no
/// view has been folded into it: its operands have the shapes that the operator knows.
void check_relations(const Graph& graph, const Operator& op);

} // namespace monet

// What holds between the shapes of one operator's operands where its nest cannot prove it: views,
// which have no nest, and operands that a nest calls opaque or reads beyond their edges.
#pragma once

#include "monet/workload/graph.hpp"

namespace monet {

/// Throws InputError with the node and what is expected. The operator's contract holds already, and
/// no view has been folded into it: its operands have the shapes that the operator knows.
void check_relations(const Graph& graph, const Operator& op);

} // namespace monet

// Storing a small part instead of the whole.
#pragma once

#include "monet/workload/graph.hpp"

namespace monet {

/// Where backward operators read less than half of a forward result, through views (one step of a
/// sequence, the values among queries, keys and values), that part is copied when it is made, and
/// the copy is stored. `any`: where they read less at all, and of inputs and labels, too. Tensors
/// keep their ids.
Graph keep_parts(const Graph& graph, bool any = false);

} // namespace monet

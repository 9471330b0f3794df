// Attention as exported -> one operator.
#pragma once

#include "monet/workload/graph.hpp"

namespace monet {

/// The network with every MatMul (scaled, masked) Softmax MatMul as one ai.monet.Attention. Tensors
/// keep their ids; those between the two products have no producer any more. Left as they are:
/// chains with a mask that is trained, with dropout, with a value as wide as no key, and those
/// whose scores somebody else reads.
Graph fuse_attention(const Graph& network);

} // namespace monet

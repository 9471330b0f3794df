// The smallest form of what is stored for the backward part.
#pragma once

#include "monet/workload/graph.hpp"

namespace monet {

/// - An activation whose derivative takes two values (Relu, LeakyRelu, Clip, HardSigmoid) writes
/// one
///   bit an element instead of keeping its input or output, if nothing else in the backward part
///   reads that: op_type stays, the domain becomes ai.monet, the mask is output 1. Its gradient
///   becomes MaskGrad.
/// - Masks of dropout and computed conditions are packed, one bit an element.
/// - Max-pooling's indices, places in a window, take the smallest integer that holds them.
void pack_stored(Graph& graph);

} // namespace monet

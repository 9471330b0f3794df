// Random small networks of real operators, and training steps of them.
#pragma once

#include "schedule/random.hpp"

#include "monet/training_graph/training.hpp"

namespace monet::testing {

struct NetworkShape {
  int operators = 6;     ///< at most
  bool training = false; ///< the step of a random optimiser instead of inference
  bool offload = false;  ///< what it stores waits in the host
};

/// Images (convolutions with stride, padding, dilation and groups, pooling, normalisation,
/// concatenation, slices, transposes, residual sums) or sequences (products of both kinds, softmax,
/// reductions, views), views folded. Tensors have tens to hundreds of elements.
TrainingGraph random_step(Random& random, const NetworkShape& shape);

} // namespace monet::testing

// What stands between a network and its training step, said before anything is computed.
#pragma once

#include "monet/training/training.hpp"
#include "monet/workload/onnx_reader.hpp"

#include <vector>

namespace monet {

/// Every operator that cannot be read, and every one that cannot be differentiated though a
/// gradient has to pass it; each with the path that the gradient would take, from a trained
/// parameter to the loss. In the order of the operators.
std::vector<InputProblem> explain_operators(const NetworkOutline& outline,
                                            const TrainingOptions& options);
/// Makes reading a network report them, and take for parameters what the options say.
void read_for(OnnxReadOptions& reading, const TrainingOptions& training);

} // namespace monet

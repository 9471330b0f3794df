// What stands between a network and its training step, said before anything is computed.
#pragma once

#include "monet/training/training.hpp"
#include "monet/workload/onnx_reader.hpp"

#include <vector>

namespace monet {

/// Makes reading a network report them, and take for parameters what the options say.
void read_for(OnnxReadOptions& reading, const TrainingOptions& training);

} // namespace monet

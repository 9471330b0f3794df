// A picture of a training step: forward, backward and update side by side.
#pragma once

#include "monet/training/training.hpp"

#include <string>

namespace monet {

/// An SVG document. Each forward operator is a row; its gradients and updates lie in the columns to
/// its right, so that data flows down through the forward pass, across where a tensor is stored,
/// and up through the backward pass. Meant for steps whose views are folded. Names are escaped.
std::string graph_svg(const TrainingGraph& step);

} // namespace monet

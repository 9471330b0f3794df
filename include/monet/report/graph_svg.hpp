// A picture of a training step: forward, backward and update side by side.
#pragma once

#include "monet/training/training.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace monet {

/// An SVG document. Each forward operator is a row; its gradients and updates lie in the columns to
/// its right, so that data flows down through the forward pass, across where a tensor is stored,
/// and up through the backward pass. Meant for steps whose views are folded. Names are escaped.
std::string graph_svg(const TrainingGraph& step);

/// Not part of any group.
inline constexpr std::uint32_t kAlone = 0xFFFFFFFF;
/// The same with each operator in the colour of its group and the group's number beside it: one of
/// twelve colours in turn, white where the operator is on its own. `groups`: one entry per
/// operator.
std::string graph_svg(const TrainingGraph& step, const std::vector<std::uint32_t>& groups);

} // namespace monet

// Memory that any schedule of a step needs at some moment.
#pragma once

#include "optimise/bounds/step_cone.hpp"

#include <cstdint>

namespace monet {

/// Bytes that are live at the last cycle of the tile that makes the middle element of the
/// operator's result, as Timeline::peak counts them: its operator has begun and not ended;
/// `before`, of needed_by(), has begun, and `after`, of depending_on(), has not. Tensors count as a
/// whole from the first tile of their producer to the last of their readers. Without
/// `all_kept`, what an operator makes need not be kept until it is read again.
std::int64_t least_live(const Graph& graph, OpId op, const StepCone& before, const StepCone& after,
                        bool all_kept);

} // namespace monet

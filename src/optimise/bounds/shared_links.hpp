// Minimum traffic over a link whose removal divides a chip.
#pragma once

#include "monet/hardware/chip.hpp"
#include "monet/training_graph/training.hpp"

#include <vector>

namespace monet {

/// Lower bound on the cycles of the busiest link in every schedule in which operator i runs on some
/// of `cores[i]`, for any tiling. Such a link divides the chip. Data crosses it if one part or the
/// off-chip memory holds it and another part reads it, or if the off-chip memory must have it at
/// the end. Each element counts once for any number of readers.
double busiest_link_cycles(const TrainingGraph& step, const Chip& chip,
                           const std::vector<std::vector<CoreId>>& cores);

} // namespace monet

// What must cross a link that parts a chip in two or more.
#pragma once

#include "monet/hardware/chip.hpp"
#include "monet/training_graph/training.hpp"

#include <vector>

namespace monet {

/// Cycles that the busiest link needs in every schedule in which operator i runs on some of
/// `cores[i]`, whatever the tiles. Without the link the chip falls apart; what one part makes, or
/// the off-chip memory holds, and another part reads, or the off-chip memory must have in the end,
/// crosses it: each element once, however many read it.
double busiest_link_cycles(const TrainingGraph& step, const Chip& chip,
                           const std::vector<std::vector<CoreId>>& cores);

} // namespace monet

// What the operators of a rank take on a modelled chip.
#pragma once

#include "monet/core_cost/core_cost.hpp"
#include "monet/hardware/chip.hpp"
#include "monet/training/training.hpp"

#include <vector>

namespace monet::cluster_cost {

struct ChipCosts {
  // By operator; together the latency and the energy of what is modelled.
  std::vector<double> nanoseconds; ///< whole numbers
  std::vector<double> picojoules;
};

/// Models the step, but for its collectives, as `monet schedule` does by default: the better of
/// layer by layer and fused. With `update_apart`, where gradients add up over micro-batches or
/// ranks, passes and update are modelled apart: an update cannot take a gradient from the core that
/// makes it, and must not be paid with every micro-batch. Operators whose tiles run at a time share
/// it; waiting counts for the next one that runs. Energy that is no run's (links, off-chip memory,
/// leakage) is shared out by that time. InfeasibleError where the chip cannot run it, or has no
/// frequency.
ChipCosts chip_costs(const TrainingGraph& step, const Chip& chip, CoreCostCache& costs,
                     bool update_apart);

} // namespace monet::cluster_cost

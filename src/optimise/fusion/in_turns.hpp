// The best way for a part of the images, for all of them in turns (step_mode.cpp).
#pragma once

#include "monet/model/model_step.hpp"

#include <optional>

namespace monet {

/// The best way for a part of the images, as choose_step() finds it, for all of them in turns: more
/// images then cost no more each, unless what their gradients add up to does not stay on the chip
/// from turn to turn. Nothing where the step takes no turns (find_turns()), or its allocation is
/// given. `options.tiling` is fused; without `search` no search_briefly() is part of it.
std::optional<TilingOptions> best_in_turns(const TrainingGraph& step, const Chip& chip,
                                           StepOptions options, Objective objective,
                                           CoreCostCache& costs, bool search);

} // namespace monet

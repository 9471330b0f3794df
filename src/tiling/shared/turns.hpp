// Fusion plans in turns: a plan for a part of the batch that runs once per part.
//
// A plan that suits one image may not fit on the chip for four, since more data then pass between
// groups. In turns, all groups run for the first images before any group begins with the next
// images. The number of turns is the number of such parts of the batch. Weight gradients add up
// over the turns, and the update follows the last one.
#pragma once

#include "monet/tiling/tiling.hpp"

#include <cstdint>
#include <optional>
#include <vector>

namespace monet {

/// Operators of a step that can take turns, and their loops over images.
struct StepTurns {
  /// Maximum number of turns. It divides every loop evenly, and is normally the batch size.
  std::int64_t most = 1;
  /// Per operator: its loop over the images. nullopt: the operator waits for all turns (such as an
  /// update), or depends on no image.
  std::vector<std::optional<std::uint32_t>> loops;
};

/// Finds the operators of a step that can take turns; the step's views must be folded. Returns
/// nullopt if they do less than nine tenths of the work outside the update. A normalisation over
/// the batch, for example, needs all images before it continues with any. Also returns nullopt for
/// a batch of one, and for a step with several passes, which are turns already.
std::optional<StepTurns> find_turns(const TrainingGraph& step);

/// Makes the step for one of `count` equal parts of its images, for planning. Loops and tensors
/// that take turns are shorter by that factor; all ids remain. `count` must divide StepTurns::most.
TrainingGraph one_turn(const TrainingGraph& step, const StepTurns& turns, std::int64_t count);

/// Converts a plan for one_turn() to a plan for the whole step in `count` turns. If the plan has
/// turns itself, the numbers are multiplied; throws InfeasibleError if the product exceeds
/// StackSlices::kMaxTurns. Operators outside the plan's stacks also take turns.
FusionPlan in_turns(const FusionPlan& plan, const TrainingGraph& step, const StepTurns& turns,
                    std::int64_t count);

} // namespace monet

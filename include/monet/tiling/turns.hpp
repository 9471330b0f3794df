// Steps that run some images at a time: a plan for a part of the batch, taken in turns.
//
// A plan that suits one image may not fit for four: what groups hand on to each other then leaves
// the chip. In turns, all groups run for the first images before any begins with the next, as often
// as the batch has such parts. Gradients of weights add up over the turns, and the update follows
// the last one.
#pragma once

#include "monet/tiling/tiling.hpp"

#include <cstdint>
#include <optional>
#include <vector>

namespace monet {

/// Which operators can take turns, and along which loop.
struct StepTurns {
  std::int64_t most = 1; ///< turns that every loop can be parted into evenly: the batch as a rule
  /// Per operator: the loop that leads over the images. None: the operator waits for all turns, as
  /// an update does, or needs none of the images.
  std::vector<std::optional<std::uint32_t>> loops;
};

/// Nothing where operators that take turns do less than nine tenths of the work outside the update
/// (normalisation over a batch needs all images before it goes on with any), and where a step has
/// several passes, which are turns already. `step` has its views folded.
std::optional<StepTurns> find_turns(const TrainingGraph& step);

/// The step for one of `count` equal parts of its images, to plan with: loops and tensors of what
/// takes turns are shorter by that factor, all ids stay. `count` divides StepTurns::most.
TrainingGraph one_turn(const TrainingGraph& step, const StepTurns& turns, std::int64_t count);

/// A plan for one_turn() as a plan for the whole step in `count` turns; in those of the plan, where
/// it has some, so many times. InfeasibleError beyond StackSlices::kMaxTurns. Operators that it
/// leaves alone take turns, too.
FusionPlan in_turns(const FusionPlan& plan, const TrainingGraph& step, const StepTurns& turns,
                    std::int64_t count);

} // namespace monet

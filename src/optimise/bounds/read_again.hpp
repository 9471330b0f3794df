// Parameters too large to stay on the chip between their last reader and their update, and the
// minimum memory of any schedule at some moment of a step.
#pragma once

#include "optimise/bounds/step_cone.hpp"

#include "monet/workload/graph.hpp"

#include <cstdint>
#include <vector>

namespace monet {

/// Bounds repeated reads of parameters. An update starts after all other readers of the data it
/// overwrites. Data that the update reads is then still on the chip, or read again from the
/// off-chip memory.
class ReadAgain {
public:
  /// `room`: capacity of the chip in bits.
  ReadAgain(const Graph& graph, double room);

  /// Minimum bits read again after a moment, in addition to first reads. `after`: the cone of
  /// iterations that cannot start before the moment; null for the whole step.
  double bits(const StepCone* after) const;

private:
  struct Reader {
    OpId op;
    const Access* access = nullptr;
  };
  struct Overwritten {
    double elements = 0;
    double width = 0;           ///< bits per element
    std::vector<Reader> before; ///< other readers of the whole tensor
  };

  const Graph& graph_;
  double room_;
  std::vector<Overwritten> tensors_;
};

/// Minimum bytes live at the last cycle of the tile that makes the middle element of the operator's
/// result, counted as in Timeline::peak. The operator has begun and not ended; `before`, from
/// needed_by(), has begun and `after`, from depending_on(), has not. Whole tensors count from the
/// first tile of their producer to the last tile of their readers. Without `all_kept`, an
/// operator's results need not be kept until they are read again.
std::int64_t min_live(const Graph& graph, OpId op, const StepCone& before, const StepCone& after,
                      bool all_kept);

} // namespace monet

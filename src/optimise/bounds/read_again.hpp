// Parameters that are too large to stay on the chip between their last reader and their update, and
// memory that any schedule of a step needs at some moment.
#pragma once

#include "optimise/bounds/step_cone.hpp"

#include "monet/workload/graph.hpp"

#include <cstdint>
#include <vector>

namespace monet {

/// An update starts when everybody else has read what it overwrites. What it reads of that is then
/// on the chip, or comes from the off-chip memory once more.
class ReadAgain {
public:
  /// `room`: bits that the chip holds.
  ReadAgain(const Graph& graph, double room);

  /// Bits that come again beside those of the first time after a point, of which `after` is the
  /// cone of what cannot start before; of the first time in the step without.
  double bits(const StepCone* after) const;

private:
  struct Reader {
    OpId op;
    const Access* access = nullptr;
  };
  struct Overwritten {
    double elements = 0;
    double width = 0;           ///< bits of one
    std::vector<Reader> before; ///< who else reads all of it
  };

  const Graph& graph_;
  double room_;
  std::vector<Overwritten> tensors_;
};

/// Bytes that are live at the last cycle of the tile that makes the middle element of the
/// operator's result, as Timeline::peak counts them: its operator has begun and not ended;
/// `before`, of needed_by(), has begun, and `after`, of depending_on(), has not. Tensors count as a
/// whole from the first tile of their producer to the last of their readers. Without
/// `all_kept`, what an operator makes need not be kept until it is read again.
std::int64_t min_live(const Graph& graph, OpId op, const StepCone& before, const StepCone& after,
                      bool all_kept);

} // namespace monet

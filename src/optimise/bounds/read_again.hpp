// Parameters that are too large to stay on the chip between their last reader and their update.
#pragma once

#include "optimise/bounds/step_cone.hpp"

#include "monet/workload/graph.hpp"

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

} // namespace monet

// Least figures of a step on any schedule, from little of a chip.
#pragma once

#include "monet/explore/design.hpp"
#include "monet/hardware/chip.hpp"
#include "monet/training/training.hpp"

#include <map>
#include <mutex>

namespace monet {

/// Microseconds a chip, but for the first chip of each size of memory.
class StepFloors {
public:
  /// A step whose views are folded. `made_once`: as StepBoundOptions has it.
  StepFloors(const TrainingGraph& step, bool made_once) : step_(&step), made_once_(made_once) {}

  /// Latency and energy of the off-chip memory for the traffic that is compulsory, and for what has
  /// no room in all memories together; the peak of live memory. From several threads.
  StepFigures of(const Chip& chip);

private:
  struct Traffic {
    double read = 0, written = 0; ///< bits
    std::int64_t peak_bytes = 0;
  };
  Traffic traffic(const Chip& chip);

  const TrainingGraph* step_;
  bool made_once_;
  std::mutex mutex_;
  std::map<int, Traffic> known_; ///< by size of the memories, in steps
};

} // namespace monet

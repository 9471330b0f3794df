// How the learning rate changes while a network trains.
#pragma once

#include <cstdint>
#include <vector>

namespace monet {

/// Steps of a run.
struct RunLength {
  std::int64_t steps = 0;
  std::int64_t steps_of_epoch = 1;
};

/// A share of the optimiser's own rate, those of its groups included.
struct RateSchedule {
  enum class Kind {
    constant,
    cosine, ///< half a period from 1 to `last` (Loshchilov and Hutter 2017, without restarts)
    step,   ///< times `factor` at every milestone
    linear, ///< a straight line from 1 to `last`
  };
  Kind kind = Kind::constant;
  std::int64_t warmup = 0; ///< steps in which it grows from 1 / warmup to 1; cosine and linear
                           ///< begin behind them
  std::vector<std::int64_t> milestones; ///< epochs, counted from 0, that begin with a lower rate
  double factor = 0.1;
  double last = 0.0; ///< share where the run ends

  /// Of a step, counted from 0.
  double share(std::int64_t step, const RunLength& run) const;
};

} // namespace monet

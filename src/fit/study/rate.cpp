// Learning rate of each step: warm-up, then a schedule. The training loop calls it.
#include "monet/fit/study.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace monet {

namespace {

/// Progress after the warm-up: 0 at its end, 1 at the end of the run.
double progress(std::int64_t step, std::int64_t warmup, std::int64_t steps) {
  const double done = static_cast<double>(step - warmup);
  const double all = static_cast<double>(std::max<std::int64_t>(steps - warmup, 1));
  return std::clamp(done / all, 0.0, 1.0);
}

} // namespace

double RateSchedule::share(std::int64_t step, const RunLength& run) const {
  const double grown =
      step < warmup ? static_cast<double>(step + 1) / static_cast<double>(warmup) : 1.0;
  const double at = progress(step, warmup, run.steps);
  switch (kind) {
  case Kind::constant:
    break;
  case Kind::cosine:
    return grown * (last + (1 - last) * (1 + std::cos(std::numbers::pi * at)) / 2);
  case Kind::linear:
    return grown * (1 + (last - 1) * at);
  case Kind::step: {
    const std::int64_t epoch = step / run.steps_of_epoch;
    double share = grown;
    for (const std::int64_t milestone : milestones)
      share *= epoch >= milestone ? factor : 1.0;
    return share;
  }
  }
  return grown;
}

} // namespace monet

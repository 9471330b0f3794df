// Durations on a cluster, in whole nanoseconds so that sums do not depend on their order.
#pragma once

#include "monet/base/errors.hpp"

#include <cmath>
#include <cstdint>

namespace monet {

using Nanoseconds = std::int64_t;

/// Duration in whole nanoseconds, rounded up. Throws InternalError if it is negative, NaN or too
/// large.
inline Nanoseconds whole_nanoseconds(double nanoseconds) {
  constexpr double kLongest = 9e18; // 285 years
  internal_check(nanoseconds >= 0 && nanoseconds < kLongest, "a duration is none that can be");
  return static_cast<Nanoseconds>(std::ceil(nanoseconds));
}

} // namespace monet

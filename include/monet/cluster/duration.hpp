// Durations of a cluster: whole nanoseconds, so that sums do not depend on their order.
#pragma once

#include <cstdint>

namespace monet {

using Nanoseconds = std::int64_t;

/// What `bytes` take at a bandwidth in gigabytes (10^9) a second, rounded up. InternalError unless
/// the bandwidth is positive and the duration fits.
Nanoseconds duration_of(double bytes, double gigabytes_per_second);
/// A duration in nanoseconds as a whole number, rounded up. InternalError unless it is one that
/// fits.
Nanoseconds whole_nanoseconds(double nanoseconds);

} // namespace monet

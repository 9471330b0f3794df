// Durations of a cluster: whole nanoseconds, so that sums do not depend on their order.
#pragma once

#include <cstdint>

namespace monet {

using Nanoseconds = std::int64_t;

/// A duration in nanoseconds as a whole number, rounded up. InternalError unless it is one that
/// fits.
Nanoseconds whole_nanoseconds(double nanoseconds);

} // namespace monet

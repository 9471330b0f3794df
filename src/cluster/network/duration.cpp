#include "monet/cluster/duration.hpp"

#include "monet/base/errors.hpp"

#include <cmath>

namespace monet {

Nanoseconds whole_nanoseconds(double nanoseconds) {
  constexpr double kLongest = 9e18; // 285 years
  internal_check(nanoseconds >= 0 && nanoseconds < kLongest, "a duration is none that can be");
  return static_cast<Nanoseconds>(std::ceil(nanoseconds));
}

} // namespace monet

// How many numbers are not 0: what rounding has flushed is the difference.
#pragma once

#include <cstdint>
#include <span>

namespace monet {

template <class Real>
std::int64_t nonzeros(std::span<const Real> numbers) {
  std::int64_t count = 0;
  for (const Real x : numbers)
    count += x != 0 ? 1 : 0;
  return count;
}

} // namespace monet

// Divisors of a loop's size: the parts into which it can be cut evenly.
#pragma once

#include <cstdint>
#include <vector>

namespace monet {

/// All divisors of n in rising order; empty for 0.
inline std::vector<std::int64_t> divisors(std::int64_t n) {
  std::vector<std::int64_t> found;
  std::vector<std::int64_t> large;
  for (std::int64_t d = 1; d <= n / d; ++d) {
    if (n % d != 0)
      continue;
    found.push_back(d);
    if (d != n / d)
      large.push_back(n / d);
  }
  found.insert(found.end(), large.rbegin(), large.rend());
  return found;
}

} // namespace monet

// Conversion between a design's id and the indices of its parameters' values.
#pragma once

#include "monet/explore/space.hpp"

#include <cstdint>
#include <vector>

namespace monet {

/// Mixed-radix digits of `id`, the most significant first; digit i has `count_of(i)` values. `id`
/// becomes the remaining quotient, which is 0 unless the id is too large.
template <class CountOf>
std::vector<std::uint32_t> mixed_radix_digits(DesignId& id, std::size_t digits, CountOf count_of) {
  std::vector<std::uint32_t> found(digits);
  for (std::size_t i = digits; i-- > 0;) {
    const std::uint64_t count = count_of(i);
    found[i] = static_cast<std::uint32_t>(id % count);
    id /= count;
  }
  return found;
}

template <class CountOf>
DesignId mixed_radix_number(const std::vector<std::uint32_t>& digits, CountOf count_of) {
  DesignId id = 0;
  for (std::size_t i = 0; i < digits.size(); ++i)
    id = id * count_of(i) + digits[i];
  return id;
}

} // namespace monet

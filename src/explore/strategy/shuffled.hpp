// A random permutation of the numbers below a count that needs little memory.
#pragma once

#include "base/shared/rng.hpp"

#include <cstdint>
#include <utility>
#include <vector>

namespace monet {

/// A random permutation of 0 .. count - 1. A small range is shuffled as a list (Fisher, Yates
/// 1938). A large one uses a Feistel network over the next power of four, repeated until the result
/// is below the count (Black, Rogaway 2002).
class Shuffled {
public:
  Shuffled(std::uint64_t count, std::uint64_t seed) : count_(count) {
    constexpr std::uint64_t few = 1U << 16U;
    RandomStream random(seed, 0x5AFF1E);
    if (count <= few) {
      for (std::uint64_t i = 0; i < count; ++i)
        list_.push_back(i);
      for (std::uint64_t i = count; i > 1; --i)
        std::swap(list_[i - 1], list_[random.below(i)]);
      return;
    }
    while (half_ < 32 && (std::uint64_t{1} << (2 * half_)) < count)
      ++half_;
    for (std::uint64_t& key : keys_)
      key = random.bits();
  }

  /// The number at position `place`, which must be below the count.
  std::uint64_t operator[](std::uint64_t place) const {
    if (!list_.empty())
      return list_[place];
    do
      place = mixed(place);
    while (place >= count_);
    return place;
  }

private:
  std::uint64_t mixed(std::uint64_t value) const {
    const std::uint64_t mask = (std::uint64_t{1} << half_) - 1;
    std::uint64_t left = value >> half_, right = value & mask;
    for (const std::uint64_t key : keys_)
      left = std::exchange(right, left ^ (random_bits(key, right) & mask));
    return left << half_ | right;
  }

  std::uint64_t count_;
  unsigned half_ = 9; ///< bits of one half
  std::uint64_t keys_[8] = {};
  std::vector<std::uint64_t> list_;
};

} // namespace monet

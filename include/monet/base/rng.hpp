// A counter-based random generator: the n-th number of a seed is the same on any machine and
// thread.
#pragma once

#include <cstdint>

namespace monet {

/// SplitMix64 (Steele, Lea, Flood 2014) of seed and counter; uniform over all 64-bit values.
constexpr std::uint64_t random_bits(std::uint64_t seed, std::uint64_t counter) {
  std::uint64_t z = seed + (counter + 1) * 0x9E3779B97F4A7C15ULL;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ULL;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBULL;
  return z ^ (z >> 31);
}

/// Uniform in [0, 1).
constexpr double random_unit(std::uint64_t seed, std::uint64_t counter) {
  return static_cast<double>(random_bits(seed, counter) >> 11) * 0x1.0p-53;
}

} // namespace monet

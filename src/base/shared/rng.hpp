// A counter-based random generator: the n-th number of a seed is identical on every machine and
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

/// Random number of seed and counter, uniform in [0, 1).
constexpr double random_unit(std::uint64_t seed, std::uint64_t counter) {
  return static_cast<double>(random_bits(seed, counter) >> 11) * 0x1.0p-53;
}

/// A stream of random numbers from one seed. A copy continues independently.
class RandomStream {
public:
  /// Streams with the same seed and different numbers are independent.
  explicit constexpr RandomStream(std::uint64_t seed, std::uint64_t number = 0)
      : seed_(random_bits(random_bits(seed, 0), number)) {}

  constexpr std::uint64_t bits() { return random_bits(seed_, counter_++); }
  /// Next random number, uniform in [0, 1).
  constexpr double unit() { return random_unit(seed_, counter_++); }
  /// Random integer in 0 .. count - 1; count must be positive and far below 2^64.
  constexpr std::uint64_t below(std::uint64_t count) { return bits() % count; }
  constexpr bool chance(double probability) { return unit() < probability; }

private:
  std::uint64_t seed_;
  std::uint64_t counter_ = 0;
};

} // namespace monet

// The mutators' random numbers: all of them follow from the seed that libFuzzer gives.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <limits>

namespace monet::fuzz {

class Random {
public:
  explicit Random(std::uint64_t seed) : state_(seed) {}

  /// SplitMix64 (Steele, Lea and Flood, 2014).
  std::uint64_t raw() {
    state_ += 0x9E3779B97F4A7C15ULL;
    std::uint64_t z = state_;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ULL;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBULL;
    return z ^ (z >> 31);
  }
  /// From 0 to n - 1; 0 where n is 0.
  std::size_t below(std::size_t n) { return n == 0 ? 0 : static_cast<std::size_t>(raw() % n); }
  int index(int n) { return static_cast<int>(below(static_cast<std::size_t>(n))); }
  bool one_in(std::size_t n) { return below(n) == 0; }
  template <class List>
  const auto& pick(const List& list) {
    return list[below(std::size(list))];
  }

  /// Small more often than not; else at the edges of what 8, 32, 53 and 64 bits hold.
  std::int64_t integer() {
    constexpr std::int64_t kBit32 = std::int64_t{1} << 32;
    constexpr std::int64_t kEdges[]{16,
                                    63,
                                    64,
                                    100,
                                    127,
                                    128,
                                    255,
                                    256,
                                    1000,
                                    65535,
                                    65536,
                                    kBit32 / 2 - 1,
                                    kBit32 / 2,
                                    kBit32 - 1,
                                    kBit32,
                                    kBit32 + 1,
                                    kBit32 + 2,
                                    std::int64_t{1} << 40,
                                    std::int64_t{1} << 42,
                                    std::int64_t{1} << 53,
                                    std::int64_t{1} << 62,
                                    std::numeric_limits<std::int64_t>::max() - 1,
                                    std::numeric_limits<std::int64_t>::max(),
                                    std::numeric_limits<std::int64_t>::min(),
                                    std::numeric_limits<std::int64_t>::min() + 1,
                                    -kBit32 / 2,
                                    -kBit32 / 2 - 1,
                                    -kBit32};
    return one_in(4) ? pick(kEdges) : static_cast<std::int64_t>(below(12)) - 3;
  }
  double real() {
    constexpr double kEdges[]{0.0,
                              -0.0,
                              1.0,
                              -1.0,
                              0.5,
                              2.0,
                              1e-45,
                              1e-310,
                              3e9,
                              -3e9,
                              3e38,
                              1e19,
                              -1e19,
                              std::numeric_limits<double>::quiet_NaN(),
                              std::numeric_limits<double>::infinity(),
                              -std::numeric_limits<double>::infinity()};
    return one_in(2) ? pick(kEdges) : static_cast<double>(integer()) / 4;
  }

private:
  std::uint64_t state_;
};

} // namespace monet::fuzz

// Counter-based tensor values: element i depends only on the tensor's name, the seed and i, so that
// a reference implementation reproduces the values without files.
#pragma once

#include <cstdint>
#include <string_view>

namespace monet {

/// Generator of a tensor's values: random_bits() (splitmix64) keyed by the FNV-1a hash of the name
/// and the seed.
class NumberGenerator {
public:
  NumberGenerator(std::string_view name, std::uint64_t seed);

  std::uint64_t raw(std::uint64_t i) const;
  /// Value i, uniform in [-1, 1): 53 bits, exact in double.
  double uniform(std::uint64_t i) const;
  /// Value i, uniform in [0, 1).
  double fraction(std::uint64_t i) const;
  /// Integer i, raw(i) modulo `count`: 0 to count - 1.
  std::int64_t index(std::uint64_t i, std::int64_t count) const;

private:
  std::uint64_t key_;
};

} // namespace monet

// Numbers from a counter: element i of a tensor depends on the tensor's name, the seed and i alone,
// so that a reference implementation reproduces them without files.
#pragma once

#include <cstdint>
#include <string_view>

namespace monet {

/// random_bits() (splitmix64) keyed by the FNV-1a hash of the name, combined with the seed.
class NumberGenerator {
public:
  NumberGenerator(std::string_view name, std::uint64_t seed);

  std::uint64_t raw(std::uint64_t i) const;
  /// Uniform in [-1, 1): 53 bits, exact in double.
  double uniform(std::uint64_t i) const;
  /// Uniform in [0, 1).
  double fraction(std::uint64_t i) const;
  /// raw(i) modulo `count`: 0 to count - 1.
  std::int64_t index(std::uint64_t i, std::int64_t count) const;

private:
  std::uint64_t key_;
};

} // namespace monet

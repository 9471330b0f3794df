// A digest of numbers, for comparing what is too much to keep as a fixture.
#pragma once

#include <bit>
#include <concepts>
#include <cstdint>

namespace monet::testing {

/// FNV-1a, 64 bits, over 64-bit words, lowest byte first.
class Digest {
public:
  void add(std::integral auto value) {
    auto bits = static_cast<std::uint64_t>(static_cast<std::int64_t>(value));
    for (int i = 0; i < 8; ++i, bits >>= 8)
      state_ = (state_ ^ (bits & 0xff)) * 0x100000001b3;
  }
  void add(double value) { add(std::bit_cast<std::int64_t>(value)); }
  std::uint64_t value() const { return state_; }

private:
  std::uint64_t state_ = 0xcbf29ce484222325;
};

} // namespace monet::testing

// FNV-1a hash (Fowler, Noll, Vo 1991) with 64 bits: fast, not cryptographic.
#pragma once

#include <cstdint>
#include <string_view>

namespace monet {

constexpr std::uint64_t fnv1a(std::string_view bytes) {
  std::uint64_t hash = 0xcbf29ce484222325U;
  for (const char c : bytes) {
    hash ^= static_cast<unsigned char>(c);
    hash *= 0x100000001b3U;
  }
  return hash;
}

} // namespace monet

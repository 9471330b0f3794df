// SHA-512 (FIPS 180-4): identifies inputs in the provenance and determines the order of ZigZag's
// sets.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace monet {

/// SHA-512 digest of `bytes` as eight words, most significant first.
using Sha512 = std::array<std::uint64_t, 8>;
Sha512 sha512(std::string_view bytes);
/// SHA-512 digest of `bytes` as 128 hexadecimal digits.
std::string sha512_hex(std::string_view bytes);

} // namespace monet

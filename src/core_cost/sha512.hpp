// SHA-512 (FIPS 180-4), for the order of ZigZag's sets.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace monet::core_cost_detail {

/// Eight words, the most significant first.
using Sha512 = std::array<std::uint64_t, 8>;
Sha512 sha512(std::string_view bytes);

} // namespace monet::core_cost_detail

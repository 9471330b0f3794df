// Integer arithmetic that throws instead of wrapping. Used wherever sizes from a user's file are
// multiplied.
#pragma once

#include <cstdint>
#include <span>

namespace monet {

/// Product or sum as int64; throws InputError("... overflows 64 bits") when it does not fit.
std::int64_t checked_multiply(std::int64_t a, std::int64_t b);
std::int64_t checked_add(std::int64_t a, std::int64_t b);
/// Product of all factors, 1 for none.
std::int64_t checked_product(std::span<const std::int64_t> factors);

} // namespace monet

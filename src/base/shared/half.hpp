// The numbers behind 16-bit floating-point codes.
#pragma once

#include <cstdint>

namespace monet {

/// Sign, `exponent_bits` and the rest mantissa, as IEEE 754 has them: 5 for half precision, 8 for
/// bfloat16.
double half_to_double(std::uint16_t bits, int exponent_bits);

} // namespace monet

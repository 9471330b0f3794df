// What of a quantised tensor a memory would hold: codes of elements and of scales.
#pragma once

#include "monet/numerics/blocks.hpp"

#include <cstdint>
#include <optional>

namespace monet {

/// The code of an element of QuantisedTensor. Of NaN in blocks, whose scale says so, 0 where the
/// format has no code of its own; without blocks nothing.
std::optional<std::uint64_t> element_code(const TensorFormat& format, double element);
/// The code of a scale of QuantisedTensor: E8M0's byte, or that of the scales' format.
std::uint64_t scale_code(const BlockScaling& blocks, double scale);
int scale_bits(const BlockScaling& blocks);
/// Of whole blocks, with their share of the scale; without that of the tensor.
double bits_per_element(const TensorFormat& format);

} // namespace monet

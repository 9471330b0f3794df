// Volume of a union of boxes.
#pragma once

#include "monet/base/interval.hpp"

#include <cstdint>
#include <span>

namespace monet {

/// Number of elements in at least one of the boxes, which all have the same axes; 0 without boxes.
/// Throws InputError if the number does not fit into 64 bits. Worst-case time grows as boxes^axes:
/// meant for the few boxes of one tile.
std::int64_t union_volume(std::span<const Box> boxes);

} // namespace monet

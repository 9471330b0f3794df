// How much several boxes cover together.
#pragma once

#include "monet/base/interval.hpp"

#include <cstdint>
#include <span>

namespace monet {

/// Elements in at least one of the boxes, all over the same axes; 0 of none. InputError when they
/// do not fit into 64 bits. Time grows with boxes^axes at worst: meant for the few of one tile.
std::int64_t union_volume(std::span<const Box> boxes);

} // namespace monet

// How much several boxes cover together.
#pragma once

#include "monet/base/interval.hpp"

#include <cstdint>
#include <span>

namespace monet {

/// Elements in at least one of the boxes, all over the same axes.
std::int64_t union_volume(std::span<const Box> boxes);

} // namespace monet

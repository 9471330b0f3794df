// What is live at a time where fused tensors are there slice by slice.
#pragma once

#include "monet/schedule/timeline.hpp"
#include "monet/tiling/tiling.hpp"

#include <optional>

namespace monet {

/// The moment at which most bytes are live when a tensor that is made and read inside one stack
/// counts only with the parts that somebody still reads: each from the start of the tile that
/// writes it to the end of the last one that reads it. All others count whole, as in
/// Timeline::peak. Nothing where no stack has such a tensor in several parts.
std::optional<MemorySample> peak_by_slices(const TrainingGraph& step, const TileGraph& tiles,
                                           const Timeline& timeline);

} // namespace monet

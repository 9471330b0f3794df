// Recomputation plans over a range of memory amounts, for the joint search.
#pragma once

#include "monet/optimise/checkpoint_search.hpp"

#include <cstdint>
#include <functional>

namespace monet {

struct LadderOptions {
  std::int64_t levels = 6;          ///< amounts of stored bytes; the same number of peaks
  std::int64_t effort = 30'000'000; ///< maximum work of each search for a peak
};

/// Reports distinct plans with recomputation as they are found: first for amounts of bytes carried
/// into the backward part, then for peaks of live bytes. Amounts are refined from coarse to fine,
/// starting at the minimum, so a search cut short covers the whole range. With enough levels, every
/// amount that makes a difference is covered. Returns false if the control ended it.
bool plan_ladder(const CheckpointSpace& space, const LadderOptions& options,
                 const SearchControl& control,
                 const std::function<void(const RecomputePlan&)>& found);

} // namespace monet

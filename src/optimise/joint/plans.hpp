// Plans of recomputation for every amount of memory.
#pragma once

#include "monet/optimise/checkpointing.hpp"

#include <cstdint>
#include <functional>

namespace monet {

struct LadderOptions {
  std::int64_t levels = 6;          ///< amounts of stored bytes, and again of peaks
  std::int64_t effort = 30'000'000; ///< of each search for a peak
};

/// Tells of different plans, of which every one runs something again, as they are found: for
/// amounts of bytes that are carried into the backward part, then for peaks of live bytes. Amounts
/// come coarse to fine, the least first: cut short, the plans so far are spread over them. For at
/// least as many levels as there are amounts that make a difference, all of them. False where the
/// control ended it.
bool plan_ladder(const CheckpointSpace& space, const LadderOptions& options,
                 const SearchControl& control,
                 const std::function<void(const RecomputePlan&)>& found);

} // namespace monet

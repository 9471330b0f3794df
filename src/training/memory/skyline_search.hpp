// Exact search for an allocation below a given height, by filling the skyline from below.
//
// Time is cut into sections between which no buffer starts or ends. In every section buffers lie on
// top of each other; `floor` is the height up to which a section is settled. In a local valley of
// the skyline (a run of sections of equal floor between higher ones) a section is chosen, and what
// comes next in it is branched on: one of the buffers that fit into the valley, at its floor, or
// nothing there, which wastes space. Any allocation that is pushed down as far as it goes is found
// so, each by one path. What cannot fit is seen early: a section's floor is raised to the lowest
// place that any of its buffers can still have, and floor + sizes still to come must stay below the
// capacity. Ranges of sections that no buffer joins any more are searched apart; failed states are
// remembered.
//
// The ideas of canonical placements, section bounds and decomposition are those of Moffitt,
// "MiniMalloc: A Lightweight Memory Allocator for Hardware-Accelerated Machine Learning", ASPLOS
// 2023.
#pragma once

#include "training/memory/skyline.hpp"

#include <cstdint>
#include <vector>

namespace monet {

enum class SkylineResult { found, impossible, gave_up };

struct SkylineAnswer {
  SkylineResult result = SkylineResult::gave_up;
  std::vector<std::int64_t> offsets; ///< per item, when found
  std::int64_t nodes = 0;            ///< placements tried
  std::int64_t work = 0;             ///< buffers looked at
};

/// Orders in which the buffers that fit into a valley are tried.
inline constexpr int kSkylineOrders = 6;

/// What a search may cost: placements tried, buffers looked at.
struct SkylineLimits {
  std::int64_t nodes = 0;
  std::int64_t work = 0;
};

/// Tries orders in turn with growing limits until the answer is known or the limits are reached.
SkylineAnswer search_skyline(const SkylineProblem& problem, SkylineLimits limits);

} // namespace monet

// A finished timeline played again, slowly and plainly: what each core does, each link carries and
// each memory holds at every moment. Shares no code with src/schedule.
#pragma once

#include "schedule/plain.hpp"

#include "monet/hardware/chip.hpp"

#include <optional>
#include <string>

namespace monet::testing {

/// The first thing that cannot be so, or nothing.
std::optional<std::string> impossible(const PlainTimeline& timeline, const PlainTiles& tiles,
                                      const TrainingGraph& step, const Chip& chip);

/// Bits that must cross the off-chip memory's port whatever the schedule: of every tensor that
/// nobody makes, the elements that one operator reads, of that which reads most; of everything the
/// step leaves behind, what is made of it.
struct CompulsoryBits {
  std::int64_t read = 0;
  std::int64_t written = 0;
};
CompulsoryBits compulsory_bits(const TrainingGraph& step);

/// Bits that really cross it.
CompulsoryBits offchip_bits(const PlainTimeline& timeline, const Chip& chip);

} // namespace monet::testing

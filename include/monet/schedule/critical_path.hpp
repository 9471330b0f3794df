// What a finished schedule's latency consists of: a chain of runs and transfers without gap, each
// of which could not start before the one before it ended.
#pragma once

#include "monet/hardware/chip.hpp"
#include "monet/schedule/timeline.hpp"

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

namespace monet {

/// Why time passes in a segment of the chain.
enum class Limit : std::uint8_t {
  compute,  ///< a core computes
  link,     ///< data cross links, the narrowest of which is a link or bus
  offchip,  ///< data pass a port of the off-chip memory, which is the narrowest on their way
  capacity, ///< something is on its way out of a memory, or used there for the last time, and what
            ///< comes next takes its space
  order,    ///< nothing that is known: the order of placing, or a wait of a streamed write
};
inline constexpr std::size_t kLimits = 5;
std::string_view name_of(Limit limit);

struct PathSegment {
  Cycles start;
  Cycles end; ///< where the next one starts
  Limit limit = Limit::compute;
  bool transfer = false;
  OpId op;         ///< that runs, or that the transfer is done for
  CoreId core;     ///< that computes; of a transfer, the sender
  LinkId link;     ///< the narrowest on a transfer's way
  TensorId tensor; ///< that a transfer carries
};

struct CriticalPath {
  std::vector<PathSegment> segments;  ///< from 0 to the makespan, without gap
  std::array<Cycles, kLimits> sums{}; ///< cycles by Limit; add up to the makespan
};

/// Walks back from what ends last: a run waits for data that arrive, for who makes what it reads,
/// for its core, or for space, whichever ended when it started, in this order; a transfer for who
/// makes its data, for a link, for its core, or for space. n log n in runs, transfers and stays.
CriticalPath critical_path(const Timeline& timeline, const TrainingGraph& step, const Chip& chip);

} // namespace monet

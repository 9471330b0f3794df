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
  OpId op;         ///< that runs, or that the transfer is done for; none of the limit `order`
  OpId counted;    ///< the operator that the cycles count for, see operator_cycles()
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

/// Cycles of the latency by operator, which add up to the makespan; `operators`: how many the step
/// has. A segment counts for the operator whose tile runs, or whose transfer is under way. But a
/// segment whose end the path waits for because it frees space counts for the operator that waits
/// for the space (a spill always does), and one of the limit `order` for the operator that waits:
/// from cycle 0 on, for that of the first event of the path.
std::vector<Cycles> operator_cycles(const CriticalPath& path, std::size_t operators);

} // namespace monet

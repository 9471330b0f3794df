// critical_path(): breaks down the latency of a finished schedule. The path is a chain of runs and
// transfers without gap, each of which could not start before the previous one ended.
#pragma once

#include "monet/hardware/chip.hpp"
#include "monet/schedule/timeline.hpp"

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

namespace monet {

/// Limit of the progress in a segment of the critical path.
enum class Limit : std::uint8_t {
  compute, ///< a core computes
  link,    ///< data cross links, of which a link or bus is the bottleneck
  offchip, ///< data pass a port of the off-chip memory, which is the bottleneck
  /// Memory is occupied: a tensor leaves it or has its last use there, and the next tensor needs
  /// the space.
  capacity,
  order, ///< no known limit: the order of placing, or a streamed write that waits
};
/// Number of values of Limit.
inline constexpr std::size_t kLimits = 5;
std::string_view name_of(Limit limit);
using LimitCycles = std::array<Cycles, kLimits>; ///< indexed by Limit

/// A segment of the critical path.
struct PathSegment {
  Cycles start;
  Cycles end; ///< start of the next segment
  Limit limit = Limit::compute;
  bool transfer = false;
  /// Operator that runs, or that the transfer is made for; invalid for the limit `order`.
  OpId op;
  /// Operator whose total includes these cycles, see operator_cycles().
  OpId counted;
  CoreId core;     ///< core that computes; for a transfer, the sender
  LinkId link;     ///< bottleneck of a transfer's route
  TensorId tensor; ///< tensor that a transfer moves
};

/// The critical path of a schedule.
struct CriticalPath {
  std::vector<PathSegment> segments; ///< from 0 to the makespan, without gap
  LimitCycles sums{};                ///< their sum is the makespan
};

/// Finds the critical path backwards from the last event. A run waits for arriving data, the
/// producer of its operands, its core, or space: the first of these, in this order, that ended when
/// it started. A transfer waits for the producer of its data, a link, its core, or space. Takes O(n
/// log n) time in the number of runs, transfers and stays.
CriticalPath critical_path(const Timeline& timeline, const TrainingGraph& step, const Chip& chip);

/// Cycles of the latency per operator; all of them sum up to the makespan. `operators` is the
/// number of operators of the step. A segment counts for the operator whose tile runs, or whose
/// transfer is active. There are two exceptions. A segment that the path waits for because it frees
/// space counts for the operator that needs the space; a spill always does. A segment with the
/// limit `order` counts for the operator that waits; from cycle 0, that is the operator of the
/// path's first event.
std::vector<LimitCycles> operator_cycles(const CriticalPath& path, std::size_t operators);

} // namespace monet

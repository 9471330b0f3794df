// Cycles before the first MAC and after the last one: the first data on its way up to the
// multipliers, and the last results on their way out. Part of it hides behind computing.
#pragma once

#include "core_cost/model/data_movement.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

namespace monet::core_cost_detail {

inline constexpr std::size_t kMaxActivities =
    24; ///< on one port: 4 operands, 4 directions, and room for two levels

/// A transfer that happens once, before or after everything else on its port.
struct SingleTransfer {
  std::size_t operand;
  std::size_t level;
  std::size_t direction;
  double cycles;
  std::int64_t least; ///< cycles that cannot overlap with computing
  double whole = 0;   ///< cycles before any are hidden
};

/// Hides transfers of one port behind `surplus` cycles of its spare bandwidth, the longest first,
/// until they are level. ZigZag lowers all of those reached so far by what the last one may lose,
/// also below their own `least`, even below zero.
void hide_as_zigzag(std::span<SingleTransfer> transfers, double surplus);

/// The same, but each stays at its `least`: min(cycles, max(least, ceiling)) for the lowest common
/// ceiling that hides no more than `surplus` in sum.
void hide_in_spare_cycles(std::span<SingleTransfer> transfers, double surplus);

struct Loading {
  double before = 0; ///< cycles
  double after = 0;
};

/// `busy_cycles`: from the first MAC to the last. `movement` is that of the form for latency.
Loading loading_cycles(const NestModel& model, const Hierarchy& hierarchy,
                       const DataMovement& movement, double busy_cycles);

/// Bits per cycle that single transfers from or to each operand's topmost memory take from its port
/// while they hide behind computing; rounded up.
std::array<std::int64_t, kMaxOperands> hidden_rates(const NestModel& model,
                                                    const Hierarchy& hierarchy,
                                                    const DataMovement& movement,
                                                    double busy_cycles);

/// Sorts a few elements in place, stably: std::stable_sort asks the heap for a buffer.
template <class Value, class Before>
void sort_few(std::span<Value> values, const Before& before) {
  for (std::size_t i = 1; i < values.size(); ++i) {
    for (std::size_t j = i; j > 0 && before(values[j], values[j - 1]); --j)
      std::swap(values[j], values[j - 1]);
  }
}

} // namespace monet::core_cost_detail

// Data movement of an allocation: amount and frequency by operand, memory level and direction.
#pragma once

#include "core_cost/model/memory_allocation.hpp"

#include <array>
#include <cstdint>
#include <span>

namespace monet::core_cost_detail {

/// Loops of a temporal order with their running products: inside[i] is the cycles of the i
/// innermost loops, outside[i] how often they run.
struct TemporalOrder {
  explicit TemporalOrder(std::span<const Loop> loops);

  std::span<const Loop> loops;
  std::array<std::int64_t, kMaxTemporalLoops + 1> inside;
  std::array<std::int64_t, kMaxTemporalLoops + 1> outside;
};

/// `amount` elements every `period` cycles, `count` times. Zero count = no traffic.
struct Movement {
  std::int64_t amount = 0;
  std::int64_t bits = 0; ///< per element
  std::int64_t period = 0;
  std::int64_t count = 0;
  std::int64_t transfers = 0; ///< periods in which something moves: at most `count`
  std::int64_t window =
      0; ///< cycles of a period in which the transfer must happen without double buffering

  /// Average, rounded down.
  std::int64_t bits_per_cycle() const { return amount * bits / period; }
};

/// Index m of the arrays per level is what passes between level m-1 and m (0: the multipliers);
/// level m holds index m+1.
struct OperandMovement {
  std::array<std::int64_t, kMaxLevels + 1> elements{}; ///< one instance of level m-1 holds
  std::array<std::int64_t, kMaxLevels + 1> cycles{};   ///< ... for so long
  std::array<std::int64_t, kMaxLevels + 1> held_bits{};
  std::array<std::int64_t, kMaxLevels + 1>
      effective_bits{}; ///< held_bits without the outermost relevant loops
  std::array<std::array<Movement, kDirections>, kMaxLevels> levels{};
};
using DataMovement = std::array<OperandMovement, kMaxOperands>;

/// `allocation` must be stationary (see merge_stationary).
void move_data(const NestModel& model, const Hierarchy& hierarchy, const SpatialForm& spatial,
               const TemporalOrder& order, const Allocation& allocation, DataMovement& movement);

/// Moves the innermost irrelevant loops of every level down to the level below: the data does not
/// change while they run.
void merge_stationary(const NestModel& model, const Hierarchy& hierarchy,
                      std::span<const Loop> order, Allocation& allocation);

} // namespace monet::core_cost_detail

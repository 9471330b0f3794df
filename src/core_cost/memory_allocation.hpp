// Where each operand's loops are cut into memory levels for one order of the temporal loops.
#pragma once

#include "spatial_mapping.hpp"

#include <array>
#include <cstdint>
#include <span>

namespace monet::core_cost_detail {

/// Level l of an operand runs the loops order[cut[l-1], cut[l]) (from 0 for l = 0). Operands are
/// cut independently.
struct Allocation {
  std::array<std::array<std::uint8_t, kMaxLevels>, kMaxOperands> cut{};
};

/// What stopped an order, for messages.
struct AllocationFailure {
  std::size_t node = 0;
  std::size_t operand = 0;
  double bits = 0;    ///< the least that had to fit
  bool joint = false; ///< `bits` is of all operands in the memory together
};

/// Fills memories bottom-up. In each, the combination of slices that fits and leaves the fewest
/// accesses to the level above wins; ties go to the last combination. False when the order fits
/// nowhere.
bool allocate(const NestModel& model, const Hierarchy& hierarchy, const SpatialForm& spatial,
              std::span<const Loop> order, Allocation& allocation,
              AllocationFailure* failure = nullptr);

} // namespace monet::core_cost_detail

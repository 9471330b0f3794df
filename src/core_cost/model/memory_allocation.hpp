// Cuts of each operand's loops into memory levels, for one order of the temporal loops or the
// beginning of one.
#pragma once

#include "core_cost/model/spatial_mapping.hpp"

#include <array>
#include <cstdint>
#include <span>

namespace monet::core_cost_detail {

/// Level l of an operand runs the loops order[cut[l-1], cut[l]) (from 0 for l = 0). Operands are
/// cut independently.
struct Allocation {
  std::array<std::array<std::uint8_t, kMaxLevels>, kMaxOperands> cut{};
};

/// Reason why an order does not fit into the memories, for messages.
struct AllocationFailure {
  std::size_t node = 0;
  std::size_t operand = 0;
  double bits = 0;    ///< minimum that had to fit
  bool joint = false; ///< `bits` is the sum over all operands in the memory
};

/// The loops that follow the beginning of an order, in whatever order.
struct RemainingLoops {
  double iterations = 1; ///< product of their sizes
  bool any = false;      ///< there are some
  bool reduces = false;  ///< one of them adds to the output
};

/// The beginning of an order, and what follows it.
struct OrderBeginning {
  std::span<const Loop> loops; ///< innermost first
  RemainingLoops rest = {};
};

/// Cuts that hold for every continuation of a beginning.
struct PartialAllocation {
  Allocation at;
  std::array<std::uint8_t, kMaxOperands> levels{}; ///< decided so far, bottom-up
};

/// True when an iteration of the loop adds to what another one has written.
bool reduces(const OperandModel& output, const Loop& loop);

/// Fills memories bottom-up. In each, the combination of slices that fits and leaves the fewest
/// accesses to the level above wins; ties go to the last combination. False when the order fits
/// nowhere.
bool allocate(const NestModel& model, const Hierarchy& hierarchy, const SpatialForm& spatial,
              std::span<const Loop> order, Allocation& allocation,
              AllocationFailure* failure = nullptr);

/// Allocates as far as `beginning` decides it: a memory is decided once every operand in it has
/// overflowed it. Returns false if no continuation fits.
bool allocate_beginning(const NestModel& model, const Hierarchy& hierarchy,
                        const SpatialForm& spatial, const OrderBeginning& beginning,
                        PartialAllocation& allocation, AllocationFailure* failure = nullptr);

} // namespace monet::core_cost_detail

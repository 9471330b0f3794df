// The least energy and latency that any order can reach, given what crosses some of the boundaries
// between memory levels.
//
// Every boundary moves at least the whole operand once; the boundaries that are given move exactly
// what they say. Ports are busy at least for the transfers known so far, and stall for what exceeds
// the cycles of the temporal loops.
#pragma once

#include "core_cost/model/spatial_mapping.hpp"

#include <array>

namespace monet::core_cost_detail {

/// What crosses below memory level `index` of an operand (index 0: between it and the multipliers).
struct Boundary {
  double elements = 0;         ///< one transfer, exact form
  double latency_elements = 0; ///< the same for latency
  double period = 1;           ///< cycles between transfers, at most
  double sums = 1;   ///< transfers of one partial sum, at least; 1 = final values (outputs only)
  double rounds = 1; ///< of those, one after the other: what the array adds up is left out
};
using Boundaries = std::array<std::array<Boundary, kMaxLevels>, kMaxOperands>;

struct CostBound {
  double latency = 0; ///< cycles
  double energy = 0;  ///< pJ
};

class TrafficBound {
public:
  TrafficBound(const NestModel& model, const Hierarchy& hierarchy, const SpatialModel& spatial);

  /// What crosses at least, whatever the order.
  const Boundaries& least() const { return least_; }
  double min_cycles(const Boundaries& boundaries) const;
  double min_energy(const Boundaries& boundaries) const; ///< pJ
  CostBound bound(const Boundaries& boundaries) const {
    return {min_cycles(boundaries), min_energy(boundaries)};
  }
  /// Loops that do not touch the operand add to each of its elements so often, at least. Not where
  /// counts on an output's shared axes may grow faster than its loops, which makes up for it.
  bool sums_are_certain(std::size_t operand) const;

private:
  /// Calls use(level, direction, elements, bits, transfers) for both ends of a boundary.
  template <class Use>
  void transfers(std::size_t operand, std::size_t index, const Boundary& boundary, bool latency,
                 const Use& use) const;
  double energy_across(std::size_t operand, std::size_t index, const Boundary& boundary) const;
  double min_stall(const Boundaries& boundaries) const;
  double min_loading() const;

  const NestModel& model_;
  const Hierarchy& hierarchy_;
  const SpatialModel& spatial_;
  double total_ = 1; ///< product of the temporal loops
  double wave_ = 1;  ///< see Hierarchy::wave_cycles
  double loading_ = 0;
  Boundaries least_;
};

} // namespace monet::core_cost_detail

// Lower bounds of energy and latency over all orders, given the traffic across some of the
// boundaries between memory levels.
//
// Every boundary moves at least the whole operand once; the given boundaries move exactly their
// given traffic. Ports are busy at least for the transfers known so far, and stall for the part
// that exceeds the cycles of the temporal loops.
#pragma once

#include "core_cost/model/spatial_mapping.hpp"

#include <array>

namespace monet::core_cost_detail {

/// Traffic across the boundary below memory level `index` of an operand; index 0 is the boundary to
/// the multipliers.
struct Boundary {
  double elements = 0;         ///< per transfer, exact form
  double latency_elements = 0; ///< per transfer, form used for latency
  double period = 1;           ///< maximum cycles between transfers
  double sums = 1;   ///< minimum transfers of a partial sum; 1 = final values (outputs only)
  double rounds = 1; ///< part of `sums` in sequence, without sums inside the array
};
using Boundaries = std::array<std::array<Boundary, kMaxLevels>, kMaxOperands>;

struct CostBound {
  double latency = 0; ///< cycles
  double energy = 0;  ///< pJ
};

class TrafficBound {
public:
  TrafficBound(const NestModel& model, const Hierarchy& hierarchy, const SpatialModel& spatial);

  /// Minimum traffic across every boundary, for any order.
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

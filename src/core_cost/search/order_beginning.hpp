// Consequences of the innermost loops of an order for all continuations: which other beginnings
// lead to the same costs, and a bound on the best continuation.
#pragma once

#include "core_cost/model/memory_allocation.hpp"
#include "core_cost/search/traffic_bound.hpp"

#include <array>
#include <cstdint>
#include <span>
#include <vector>

namespace monet::core_cost_detail {

/// Temporal loops of a search. Loops of equal dim and size are of one kind and not distinguished.
/// Kinds are numbered as the enumeration sorts them, by name of the dim and by size.
struct LoopKinds {
  std::vector<Loop> loop;
  std::vector<std::uint8_t> count; ///< loops of the kind
  std::size_t loops = 0;           ///< of all kinds

  /// Distinct orders; a double, as there can be more than 2^63.
  double orders() const;
};
LoopKinds make_kinds(const NestModel& model, std::vector<Loop> factors);
/// Number of distinct orders for the given number of loops of each kind.
double orders_of(std::span<const std::uint8_t> counts);

/// 128 bits mixed from all that decides the cost of every continuation.
struct Fingerprint {
  std::uint64_t a = 0;
  std::uint64_t b = 0;
  friend bool operator==(const Fingerprint&, const Fingerprint&) = default;
};

struct PrefixBound {
  Fingerprint fingerprint; ///< equal: each continuation costs the same after either beginning
  CostBound bound;         ///< no continuation takes less
};

/// Judges beginnings of the orders of one unrolling. Not to be shared between threads.
class BeginningJudge {
public:
  BeginningJudge(const NestModel& model, const Hierarchy& hierarchy, const SpatialModel& spatial,
                 const LoopKinds& kinds);

  /// False when no continuation fits, or all take more than `max_cycles`.
  bool judge(std::span<const std::uint8_t> beginning, double max_cycles, PrefixBound& outlook);
  /// Lower bound of all orders.
  CostBound bound() const { return traffic_.bound(traffic_.least()); }

private:
  /// A boundary between two memory levels of an operand, as far as the beginning decides it.
  struct Cut {
    std::size_t position = 0; ///< loops inside
    bool growing = false;     ///< loops that do not touch the operand may still join
    double elements = 0;      ///< held inside, exact form
    /// Mixed from how far an output's shared axes are covered.
    std::uint64_t shared_axes = 0;
    double relevant_run = 1;   ///< outermost loops of the level below that touch the operand
    double irrelevant_run = 1; ///< ... or that do not
  };
  struct Trace {
    std::array<Cut, kMaxLevels> cuts; ///< decided, bottom-up
    std::size_t decided = 0;
    Cut end;                 ///< the level that is being filled
    std::size_t leading = 0; ///< innermost loops that do not touch the operand
  };

  void find_memories_that_take_the_largest();
  void lay_out(std::span<const std::uint8_t> beginning);
  void trace(std::size_t operand);
  void set_boundaries(std::size_t operand);
  Boundary boundary_at(std::size_t operand, const Cut& cut, std::size_t index) const;
  Fingerprint fingerprint(std::span<const std::uint8_t> beginning) const;
  double untouched_to_come(const OperandModel& operand) const;

  const NestModel& model_;
  const Hierarchy& hierarchy_;
  const SpatialModel& spatial_;
  const LoopKinds& kinds_;
  TrafficBound traffic_;
  bool whole_numbers_ = true; ///< footprints and accesses are exact in doubles
  /// Per memory: each operand gets the largest slice that fits, in whatever order its loops come.
  std::vector<bool> takes_largest_;

  std::array<Loop, kMaxTemporalLoops> loops_{};
  std::array<double, kMaxTemporalLoops + 1> prefix_{}; ///< products of loops_
  std::size_t size_ = 0;
  std::array<std::uint8_t, kMaxTemporalLoops> left_{}; ///< loops to come, per kind
  RemainingLoops rest_;
  PartialAllocation allocation_;
  std::array<Trace, kMaxOperands> trace_;
  std::array<Footprint, kMaxOperands> footprint_; ///< of the whole beginning
  Boundaries boundaries_;
};

} // namespace monet::core_cost_detail

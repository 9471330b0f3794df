// The best order of the temporal loops for one unrolling, without visiting all of them.
//
// Orders grow from the innermost loop outwards, all beginnings of one length at a time. Of
// beginnings that lead to the same costs whatever follows, only the one that an enumeration meets
// first is kept; beginnings whose best continuation is worse than what is known are dropped.
// Neither loses the optimum, nor the mapping that an enumeration in ZigZag's sequence would report
// for it.
#pragma once

#include "core_cost/model/candidate.hpp"
#include "core_cost/search/order_beginning.hpp"
#include "core_cost/search/temporal_order.hpp"

#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace monet::core_cost_detail {

struct Score {
  double latency = 0;
  double energy = 0;
};

/// The best mapping found so far by an objective.
class BestMapping {
public:
  struct Entry {
    Score score;
    std::size_t unrolling = 0; ///< as begin() numbered them
    std::vector<Loop> order;   ///< innermost first
    std::vector<std::uint8_t> kinds;
  };

  explicit BestMapping(Objective objective) : objective_(objective) {}

  /// Assigns later offers to the next unrolling. If scores are equal, the mapping of the earlier
  /// unrolling stays.
  void begin_unrolling() { ++unrolling_; }
  /// Sort key of a bound for the objective; smaller is better.
  std::pair<double, double> merit_of(const CostBound& bound) const {
    return merit(objective_, bound.latency, bound.energy);
  }
  /// Maximum cycles of a mapping that could be accepted, for any energy.
  double max_cycles() const;
  /// False if no mapping could be accepted whose cost is at least `bound`.
  bool worth(const CostBound& bound) const;
  /// Keeps the mapping if it is better than the current one. An equal one is kept only if it is of
  /// the same unrolling and earlier in the enumeration.
  void offer(const Score& score, std::span<const Loop> order, std::span<const std::uint8_t> kinds);
  const std::optional<Entry>& entry() const { return entry_; }

private:
  Objective objective_;
  std::size_t unrolling_ = 0;
  std::optional<Entry> entry_;
};

/// The orders of one unrolling.
struct OrderProblem {
  const NestModel& model;
  const Hierarchy& hierarchy;
  const SpatialModel& spatial;
  const TemporalSpace& space;
};

/// Computes the latency and energy of a feasible candidate, which the objective compares.
using Scorer = std::function<Score(const Candidate&)>;

struct OrderSearchLimits {
  /// Maximum number of beginnings of one length that are kept. Beyond it, those with the worst
  /// bounds are dropped and the search is no longer exact.
  std::size_t beginnings = std::size_t{1} << 18;
};

/// Statistics and bounds of searches, in addition to their mappings.
struct SearchLog {
  SearchEffort effort;
  std::optional<AllocationFailure> failure; ///< of the order that came closest to fitting
  CostBound bound{kNoBound, kNoBound};      ///< below all orders of all unrollings

  static constexpr double kNoBound = std::numeric_limits<double>::infinity();
};

/// Offers the orders of a space to `best`, except for those that cannot be better. Orders that the
/// space does not allow count as pruned.
void search_orders(const OrderProblem& problem, const Scorer& scorer,
                   const OrderSearchLimits& limits, BestMapping& best, SearchLog& log);

} // namespace monet::core_cost_detail

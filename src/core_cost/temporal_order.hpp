// Orders of the temporal loops (LOMA): prime factors of the loop sizes, merged to a few, in every
// distinct order.
#pragma once

#include "spatial_mapping.hpp"

#include <cstdint>
#include <vector>

namespace monet::core_cost_detail {

/// Orders tried per spatial mapping at most. 7 different loops have 5040.
inline constexpr std::int64_t kMaxOrders = 5040;

/// Prime factors of the iterations left per dim, merged to at most max(lpf_limit, number of dims
/// with work) factors (0: to kMaxTemporalLoops): the first dim with the most factors has its two
/// smallest merged. One loop of size 1 when nothing is left.
std::vector<Loop> temporal_factors(const NestModel& model,
                                   const std::vector<std::int64_t>& iterations, int lpf_limit);

/// Walks over distinct orders, innermost loop first, in the sequence of Williams (2009) that ZigZag
/// uses.
///
/// When there are more than `max_orders`, the search is restricted, always in the same way: loops
/// whose dims touch all operands alike keep their relative order (B and a batch-like dim); if that
/// is not enough, small loops are glued together until it is.
class OrderWalk {
public:
  OrderWalk(const NestModel& model, std::vector<Loop> factors, std::int64_t max_orders);

  std::size_t size() const { return loops_; }
  bool restricted() const { return restricted_; }
  std::int64_t count() const { return count_; }
  /// Writes the next order to out[0..size()); false at the end.
  bool next(Loop* out);

private:
  struct Unit {
    std::vector<Loop> loops; ///< glued loops, innermost first
    std::int64_t label = 0;  ///< equal labels are not told apart
  };

  void restrict_to(const NestModel& model, std::int64_t max_orders);
  void start();
  void write(Loop* out);

  std::vector<Unit> units_; ///< sorted by label
  std::size_t loops_ = 0;
  std::int64_t count_ = 0;
  bool restricted_ = false;
  // Linked list of units (Williams): next_[i] follows unit i.
  std::vector<std::int32_t> next_;
  std::int32_t head_ = 0;
  std::int32_t i_ = 0;
  std::int32_t j_ = 0;
  bool started_ = false;
  std::vector<std::size_t> first_with_label_; ///< per unit: first unit of its label
  std::vector<std::size_t> used_;
};

} // namespace monet::core_cost_detail

// Every order of the temporal loops, one after another: what the search is compared with.
#pragma once

#include "core_cost/search/order_beginning.hpp"

#include <cstdint>
#include <vector>

namespace monet::core_cost_detail {

/// Distinct orders, innermost loop first, in the sequence of Williams (2009) that ZigZag uses.
class OrderWalk {
public:
  OrderWalk(const NestModel& model, const std::vector<Loop>& factors)
      : kinds_(make_kinds(model, factors)) {
    for (std::size_t k = 0; k < kinds_.loop.size(); ++k)
      symbols_.insert(symbols_.end(), kinds_.count[k], k);
    // A linked list that starts non-increasing: each node is followed by the one before it.
    const auto n = static_cast<std::int32_t>(symbols_.size());
    for (std::int32_t i = 0; i < n; ++i)
      next_.push_back(i - 1);
    head_ = n - 1;
    i_ = n > 1 ? 1 : 0;
  }

  std::size_t size() const { return symbols_.size(); }

  /// Writes the next order to out[0..size()); false at the end.
  bool next(Loop* out) {
    if (started_ && (symbols_.empty() || !shift()))
      return false;
    started_ = true;
    for (std::int32_t u = head_; u >= 0; u = follower(u))
      *out++ = kinds_.loop[symbol(u)];
    return true;
  }

private:
  std::size_t symbol(std::int32_t u) const { return symbols_[static_cast<std::size_t>(u)]; }
  std::int32_t& follower(std::int32_t u) { return next_[static_cast<std::size_t>(u)]; }

  bool shift() {
    if (follower(j_) < 0 && symbol(j_) >= symbol(head_))
      return false;
    const std::int32_t s = follower(j_) >= 0 && symbol(i_) >= symbol(follower(j_)) ? j_ : i_;
    const std::int32_t t = follower(s);
    follower(s) = follower(t);
    follower(t) = head_;
    if (symbol(t) < symbol(head_))
      i_ = t;
    j_ = follower(i_);
    head_ = t;
    return true;
  }

  LoopKinds kinds_;
  std::vector<std::size_t> symbols_; ///< sorted
  std::vector<std::int32_t> next_;
  std::int32_t head_ = 0;
  std::int32_t i_ = 0;
  std::int32_t j_ = 0;
  bool started_ = false;
};

} // namespace monet::core_cost_detail

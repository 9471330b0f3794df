// Compares orders by their position in ZigZag's enumeration; BestMapping breaks ties with it.
#include "core_cost/search/order_rank.hpp"

#include "core_cost/search/temporal_order.hpp"

#include <algorithm>
#include <array>
#include <functional>

namespace monet::core_cost_detail {

namespace {

/// The symbols of an arrangement that is cut back scut by scut.
class Arrangement {
public:
  explicit Arrangement(std::span<const std::uint8_t> order) : order_(order) {
    std::copy(order.begin(), order.end(), falling_.begin());
    std::sort(falling_.begin(), falling_.begin() + static_cast<std::ptrdiff_t>(order.size()),
              std::greater<>());
  }

  struct Scut {
    std::uint8_t symbol = 0;
    std::size_t length = 0; ///< 0: the arrangement is non-increasing
  };

  Scut scut() const {
    for (std::size_t i = order_.size(); i-- > 0;) {
      if (order_[i] != falling_[i])
        return {order_[i], order_.size() - i};
    }
    return {};
  }

  void remove(const Scut& scut) {
    const std::size_t kept = order_.size() - scut.length;
    // The scut holds the smallest symbols but its own first one, which stands further ahead.
    const auto end = falling_.begin() + static_cast<std::ptrdiff_t>(kept + 1);
    std::copy(std::find(falling_.begin(), end, scut.symbol) + 1, end,
              std::find(falling_.begin(), end, scut.symbol));
    order_ = order_.first(kept);
  }

private:
  std::span<const std::uint8_t> order_;
  std::array<std::uint8_t, kMaxTemporalLoops + 1> falling_{};
};

} // namespace

bool enumerated_first(std::span<const std::uint8_t> order) {
  return std::is_sorted(order.begin(), order.end(), std::greater<>());
}

bool begins_before(std::span<const std::uint8_t> a, std::span<const std::uint8_t> b) {
  Arrangement left(a);
  Arrangement right(b);
  for (;;) {
    const auto first = left.scut();
    const auto second = right.scut();
    if (first.length == 0 || second.length == 0) // the non-increasing arrangement is last
      return first.length != 0 && second.length == 0;
    if (first.symbol != second.symbol)
      return first.symbol < second.symbol;
    if (first.length != second.length)
      return first.length > second.length;
    left.remove(first);
    right.remove(second);
  }
}

bool enumerated_before(std::span<const std::uint8_t> a, std::span<const std::uint8_t> b) {
  if (enumerated_first(a) || enumerated_first(b))
    return enumerated_first(a) && !enumerated_first(b);
  return begins_before(a, b);
}

} // namespace monet::core_cost_detail

#include "temporal_order.hpp"

#include <algorithm>
#include <tuple>

namespace monet::core_cost_detail {

namespace {

std::vector<std::int64_t> prime_factors(std::int64_t value) {
  std::vector<std::int64_t> factors;
  for (std::int64_t p = 2; p * p <= value; ++p) {
    for (; value % p == 0; value /= p)
      factors.push_back(p);
  }
  if (value > 1)
    factors.push_back(value);
  return factors;
}

/// Replaces the two smallest factors by their product.
void merge_smallest(std::vector<std::int64_t>& factors) {
  const std::int64_t product = factors[0] * factors[1];
  factors.erase(factors.begin(), factors.begin() + 2);
  factors.insert(std::lower_bound(factors.begin(), factors.end(), product), product);
}

/// Distinct arrangements of units, or more than `limit` when there are.
std::int64_t arrangements(std::vector<std::int64_t> labels, std::int64_t limit) {
  std::sort(labels.begin(), labels.end());
  // Multiply binomials C(n, run) over runs of equal labels; each partial product is a whole number.
  std::int64_t result = 1;
  std::int64_t n = 0;
  for (std::size_t i = 0; i < labels.size();) {
    std::int64_t run = 0;
    for (; i < labels.size() && (run == 0 || labels[i] == labels[i - 1]); ++i) {
      ++n;
      ++run;
      result = result * n / run;
    }
    if (result > limit)
      return limit + 1;
  }
  return result;
}

bool touch_alike(const NestModel& model, std::uint32_t a, std::uint32_t b) {
  return std::all_of(model.operands.begin(), model.operands.end(),
                     [&](const OperandModel& o) { return o.relevance[a] == o.relevance[b]; });
}

} // namespace

std::vector<Loop> temporal_factors(const NestModel& model,
                                   const std::vector<std::int64_t>& iterations, int lpf_limit) {
  struct DimFactors {
    std::uint32_t dim;
    std::vector<std::int64_t> factors;
  };
  std::vector<DimFactors> dims;
  std::size_t total = 0;
  for (std::size_t d = 0; d < iterations.size(); ++d) {
    if (iterations[d] <= 1)
      continue;
    dims.push_back({static_cast<std::uint32_t>(d), prime_factors(iterations[d])});
    total += dims.back().factors.size();
  }
  const auto wanted = lpf_limit > 0
                          ? std::min(static_cast<std::size_t>(lpf_limit), kMaxTemporalLoops)
                          : kMaxTemporalLoops;
  const std::size_t limit = std::max(wanted, dims.size());
  while (total > limit) {
    auto largest = std::max_element(dims.begin(), dims.end(), [](const auto& a, const auto& b) {
      return a.factors.size() < b.factors.size();
    });
    merge_smallest(largest->factors);
    --total;
  }
  std::vector<Loop> loops;
  for (const DimFactors& d : dims) {
    for (const std::int64_t factor : d.factors)
      loops.push_back({d.dim, static_cast<double>(factor)});
  }
  if (loops.empty() && !model.dims.empty())
    loops.push_back({0, 1});
  return loops;
}

OrderWalk::OrderWalk(const NestModel& model, std::vector<Loop> factors, std::int64_t max_orders)
    : loops_(factors.size()) {
  const auto by_name = [&](const Loop& loop) {
    return std::tie(model.dims[loop.dim].name, loop.size);
  };
  std::stable_sort(factors.begin(), factors.end(),
                   [&](const Loop& a, const Loop& b) { return by_name(a) < by_name(b); });
  for (std::size_t i = 0; i < factors.size(); ++i) {
    const bool repeated = i > 0 && by_name(factors[i - 1]) == by_name(factors[i]);
    units_.push_back({{factors[i]}, repeated ? units_.back().label : static_cast<std::int64_t>(i)});
  }
  restrict_to(model, max_orders);
  start();
}

void OrderWalk::restrict_to(const NestModel& model, std::int64_t max_orders) {
  const auto fits = [&] {
    std::vector<std::int64_t> labels;
    for (const Unit& unit : units_)
      labels.push_back(unit.label);
    count_ = arrangements(std::move(labels), max_orders);
    return count_ <= max_orders;
  };
  if (units_.empty() || fits())
    return;
  restricted_ = true;
  // One label per class of loops that touch every operand alike; different dims only, so that the
  // split of one dim keeps its orders as long as possible.
  for (std::size_t i = 1; i < units_.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      const std::uint32_t a = units_[i].loops[0].dim;
      const std::uint32_t b = units_[j].loops[0].dim;
      if (a != b && touch_alike(model, a, b)) {
        units_[i].label = units_[j].label;
        break;
      }
    }
  }
  const auto sort_units = [&] {
    std::stable_sort(units_.begin(), units_.end(),
                     [](const Unit& a, const Unit& b) { return a.label < b.label; });
  };
  sort_units();
  while (!fits() && units_.size() > 1) {
    // Glue the two units with the fewest iterations, the smaller one inside.
    const auto iterations = [](const Unit& unit) {
      double product = 1;
      for (const Loop& loop : unit.loops)
        product *= loop.size;
      return product;
    };
    const auto smaller = [&](const Unit& a, const Unit& b) {
      return iterations(a) < iterations(b);
    };
    const auto inner = std::min_element(units_.begin(), units_.end(), smaller);
    Unit glued = *inner;
    units_.erase(inner);
    const auto outer = std::min_element(units_.begin(), units_.end(), smaller);
    glued.loops.insert(glued.loops.end(), outer->loops.begin(), outer->loops.end());
    glued.label = static_cast<std::int64_t>(2 * loops_ + units_.size()); // like no other
    units_.erase(outer);
    units_.push_back(std::move(glued));
    sort_units();
  }
}

void OrderWalk::start() {
  const auto n = static_cast<std::int32_t>(units_.size());
  first_with_label_.resize(units_.size());
  for (std::size_t i = 0; i < units_.size(); ++i) {
    const bool same = i > 0 && units_[i].label == units_[i - 1].label;
    first_with_label_[i] = same ? first_with_label_[i - 1] : i;
  }
  used_.resize(units_.size());
  // The list starts non-increasing: unit n-1 is the head and each is followed by the one before it
  // in sorted order.
  next_.resize(units_.size());
  for (std::int32_t i = 0; i < n; ++i)
    next_[static_cast<std::size_t>(i)] = i - 1;
  head_ = n - 1;
  i_ = n > 1 ? 1 : 0;
  j_ = 0;
}

void OrderWalk::write(Loop* out) {
  std::fill(used_.begin(), used_.end(), 0);
  for (std::int32_t u = head_; u >= 0; u = next_[static_cast<std::size_t>(u)]) {
    // Units of one label appear in their sorted order, whichever of them stands in the list.
    const std::size_t first = first_with_label_[static_cast<std::size_t>(u)];
    for (const Loop& loop : units_[first + used_[first]++].loops)
      *out++ = loop;
  }
}

bool OrderWalk::next(Loop* out) {
  if (units_.empty())
    return false;
  const auto label = [&](std::int32_t u) { return units_[static_cast<std::size_t>(u)].label; };
  const auto follower = [&](std::int32_t u) -> std::int32_t& {
    return next_[static_cast<std::size_t>(u)];
  };
  if (started_) {
    if (follower(j_) < 0 && label(j_) >= label(head_))
      return false;
    const std::int32_t s = follower(j_) >= 0 && label(i_) >= label(follower(j_)) ? j_ : i_;
    const std::int32_t t = follower(s);
    follower(s) = follower(t);
    follower(t) = head_;
    if (label(t) < label(head_))
      i_ = t;
    j_ = follower(i_);
    head_ = t;
  }
  started_ = true;
  write(out);
  return true;
}

} // namespace monet::core_cost_detail

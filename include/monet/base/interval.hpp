// Half-open integer intervals and boxes of them: the arithmetic behind tiles, halos and
// dependencies.
// Example:
//   constexpr std::int64_t shared_rows(Interval upper, Interval lower) {
//     return intersect(upper, lower).size();
//   }
//   static_assert(shared_rows({0, 18}, {16, 34}) == 2); // halo of a 3x3 convolution
#pragma once

#include <algorithm>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace monet {

/// Half-open interval [begin, end); empty if end <= begin.
struct Interval {
  std::int64_t begin = 0;
  std::int64_t end = 0;

  constexpr std::int64_t size() const { return end > begin ? end - begin : 0; }
  constexpr bool empty() const { return end <= begin; }
  friend constexpr auto operator<=>(const Interval&, const Interval&) = default;
};

constexpr Interval intersect(Interval a, Interval b) {
  return {std::max(a.begin, b.begin), std::min(a.end, b.end)};
}

/// A box: one interval per axis of a tensor. A box without axes (a scalar) has volume 1.
using Box = std::vector<Interval>;

constexpr std::int64_t volume(const Box& box) {
  std::int64_t v = 1;
  for (const Interval& i : box)
    v *= i.size();
  return v;
}

/// Intersection of two boxes over the same axes.
inline Box intersect(Box a, const Box& b) {
  for (std::size_t axis = 0; axis < a.size(); ++axis)
    a[axis] = intersect(a[axis], b[axis]);
  return a;
}

} // namespace monet

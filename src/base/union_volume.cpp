// Volume of a union of boxes; tiling and scheduling count the distinct elements of a tensor with
// it.
#include "base/shared/union_volume.hpp"

#include "base/shared/checked.hpp"

#include "monet/base/errors.hpp"

#include <algorithm>
#include <vector>

namespace monet {

namespace {

/// Computes the volume of a union over the axes on which the boxes differ. Each level of the
/// recursion keeps its lists behind those of the previous level in two stacks, which avoids
/// allocations.
class UnionSum {
public:
  explicit UnionSum(std::span<const Box> boxes) : boxes_(boxes) {
    const std::size_t axes = boxes.front().size();
    for (const Box& box : boxes) {
      if (box.size() != axes)
        internal_check(false, "boxes of one union have other axes");
    }
    for (std::size_t axis = 0; axis < axes; ++axis) {
      const Interval first = side(boxes.front(), axis);
      const bool equal = std::all_of(boxes.begin(), boxes.end(),
                                     [&](const Box& box) { return side(box, axis) == first; });
      if (equal)
        shared_ = checked_multiply(shared_, first.size());
      else
        axes_.push_back(axis);
    }
    inside_.resize(boxes.size());
    for (std::size_t i = 0; i < boxes.size(); ++i)
      inside_[i] = static_cast<std::uint32_t>(i);
  }

  std::int64_t total() {
    if (shared_ == 0)
      return 0;
    return checked_multiply(shared_, axes_.empty() ? 1 : slices(0, 0, inside_.size()));
  }

private:
  /// Interval of a box along an axis. Uses an unchecked iterator, since the constructor checked
  /// that all boxes have the axis.
  static Interval side(const Box& box, std::size_t axis) {
    return box.begin()[static_cast<std::ptrdiff_t>(axis)];
  }

  /// Cuts the axis at every border of the boxes inside_[first, last) and adds up the slices.
  std::int64_t slices(std::size_t depth, std::size_t first, std::size_t last) {
    if (first == last)
      return 0;
    if (depth == axes_.size())
      return 1;
    const std::size_t axis = axes_[depth];
    const std::size_t begin = borders_.size();
    for (const std::uint32_t box : std::span(inside_).subspan(first, last - first)) {
      const Interval own = side(boxes_[box], axis);
      borders_.push_back(own.begin);
      borders_.push_back(own.end);
    }
    const auto from = borders_.begin() + static_cast<std::ptrdiff_t>(begin);
    std::sort(from, borders_.end());
    borders_.erase(std::unique(from, borders_.end()), borders_.end());
    const std::size_t end = borders_.size();
    std::int64_t total = 0;
    for (std::size_t b = begin; b + 1 < end; ++b) {
      const Interval slice{borders_[b], borders_[b + 1]};
      const std::size_t kept = inside_.size();
      for (std::size_t i = first; i < last; ++i) {
        const std::uint32_t box = inside_[i];
        const Interval own = side(boxes_[box], axis);
        if (own.begin <= slice.begin && own.end >= slice.end)
          inside_.push_back(box);
      }
      const std::int64_t rest = slices(depth + 1, kept, inside_.size());
      inside_.resize(kept);
      total = checked_add(total, checked_multiply(slice.size(), rest));
    }
    borders_.resize(begin);
    return total;
  }

  std::span<const Box> boxes_;
  std::vector<std::size_t> axes_; ///< axes on which the boxes differ
  std::int64_t shared_ = 1;       ///< product of the sizes along the other axes
  std::vector<std::uint32_t> inside_;
  std::vector<std::int64_t> borders_;
};

std::int64_t shared_volume(const Box& a, const Box& b) {
  std::int64_t shared = 1; // at most the volume of either box
  for (std::size_t axis = 0; axis < a.size() && shared > 0; ++axis)
    shared *= intersect(a[axis], b[axis]).size();
  return shared;
}

} // namespace

std::int64_t union_volume(std::span<const Box> boxes) {
  if (boxes.empty())
    return 0;
  if (boxes.size() == 2)
    return checked_add(volume(boxes[0]), volume(boxes[1]) - shared_volume(boxes[0], boxes[1]));
  return boxes.size() == 1 ? volume(boxes.front()) : UnionSum(boxes).total();
}

} // namespace monet

#include "monet/base/union_volume.hpp"

#include "monet/base/checked.hpp"

#include <algorithm>
#include <vector>

namespace monet {

namespace {

/// Cuts the axis at every border and adds up the slices; depth = number of axes of a tensor.
std::int64_t union_from(std::span<const Box> boxes, std::size_t axis) {
  if (boxes.empty())
    return 0;
  if (axis == boxes.front().size())
    return 1;
  std::vector<std::int64_t> borders;
  for (const Box& box : boxes) {
    borders.push_back(box[axis].begin);
    borders.push_back(box[axis].end);
  }
  std::sort(borders.begin(), borders.end());
  borders.erase(std::unique(borders.begin(), borders.end()), borders.end());
  std::int64_t total = 0;
  std::vector<Box> inside;
  for (std::size_t i = 0; i + 1 < borders.size(); ++i) {
    inside.clear();
    for (const Box& box : boxes) {
      if (box[axis].begin <= borders[i] && box[axis].end >= borders[i + 1])
        inside.push_back(box);
    }
    const std::int64_t rest = union_from(inside, axis + 1);
    total = checked_add(total, checked_multiply(borders[i + 1] - borders[i], rest));
  }
  return total;
}

} // namespace

std::int64_t union_volume(std::span<const Box> boxes) {
  if (boxes.size() == 1)
    return volume(boxes.front());
  std::vector<Box> distinct;
  for (const Box& box : boxes) {
    if (std::find(distinct.begin(), distinct.end(), box) == distinct.end())
      distinct.push_back(box);
  }
  return distinct.size() == 1 ? volume(distinct.front()) : union_from(distinct, 0);
}

} // namespace monet

#include "schedule/part_geometry.hpp"

#include "monet/base/checked.hpp"

#include <algorithm>

namespace monet {

namespace {

/// Elements in at least one of the boxes: cuts the axis at every border and adds up the slices;
/// depth = number of axes of a tensor.
std::int64_t union_volume(const std::vector<Box>& boxes, std::size_t axis) {
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
    const std::int64_t rest = union_volume(inside, axis + 1);
    total = checked_add(total, checked_multiply(borders[i + 1] - borders[i], rest));
  }
  return total;
}

} // namespace

Bits PartGeometry::read_by(TensorId id, TileId maker, std::span<const TileId> readers) {
  const Tensor& tensor = graph_.tensor(id);
  Box piece;
  tiles_.ranges(maker, ranges_);
  for (const Access& access : graph_.op(tiles_.tiles[maker.index()].op).nest.operands) {
    if (access.tensor != id || access.mode == AccessMode::read)
      continue;
    piece = region(access, ranges_, tensor.shape);
    break;
  }
  std::vector<Box> parts;
  for (const TileId reader : readers) {
    tiles_.ranges(reader, ranges_);
    for (const Access& access : graph_.op(tiles_.tiles[reader.index()].op).nest.operands) {
      if (access.tensor != id || access.mode != AccessMode::read)
        continue;
      Box part = region(access, ranges_, tensor.shape);
      for (std::size_t a = 0; a < part.size(); ++a)
        part[a] = intersect(part[a], piece[a]);
      if (volume(part) > 0)
        parts.push_back(std::move(part));
    }
  }
  return storage_of(tensor.type, union_volume(parts, 0));
}

} // namespace monet

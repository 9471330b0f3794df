#include "schedule/part_geometry.hpp"

#include "monet/base/union_volume.hpp"

namespace monet {

namespace {

/// region() into a box that keeps its storage.
void region_into(const Access& access, std::span<const Interval> tile,
                 std::span<const std::int64_t> shape, Box& out) {
  out.resize(shape.size());
  for (std::size_t i = 0; i < shape.size(); ++i)
    out[i] = access.opaque ? Interval{0, shape[i]} : axis_range(access.axes[i], tile, shape[i]);
}

} // namespace

Bits PartGeometry::read_by(TensorId id, TileId maker, std::span<const TileId> readers) {
  const Tensor& tensor = graph_.tensor(id);
  piece_.clear();
  tiles_.ranges(maker, ranges_);
  for (const Access& access : graph_.op(tiles_.tiles[maker.index()].op).nest.operands) {
    if (access.tensor != id || access.mode == AccessMode::read)
      continue;
    region_into(access, ranges_, tensor.shape, piece_);
    break;
  }
  std::size_t parts = 0;
  for (const TileId reader : readers) {
    tiles_.ranges(reader, ranges_);
    for (const Access& access : graph_.op(tiles_.tiles[reader.index()].op).nest.operands) {
      if (access.tensor != id || access.mode != AccessMode::read)
        continue;
      if (parts == parts_.size())
        parts_.emplace_back();
      Box& part = parts_[parts];
      region_into(access, ranges_, tensor.shape, part);
      for (std::size_t a = 0; a < part.size(); ++a)
        part[a] = intersect(part[a], piece_[a]);
      // Readers side by side often read the same.
      const bool known = parts > 0 && part == parts_[parts - 1];
      if (volume(part) > 0 && !known)
        ++parts;
    }
  }
  return storage_of(tensor.type, union_volume({parts_.data(), parts}));
}

} // namespace monet

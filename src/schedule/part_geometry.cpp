#include "schedule/part_geometry.hpp"

#include "monet/base/union_volume.hpp"

namespace monet {

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
  return storage_of(tensor.type, union_volume(parts));
}

} // namespace monet

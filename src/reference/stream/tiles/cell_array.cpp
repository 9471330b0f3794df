// Builds arrays of cells from layer outputs. The edges over layout operators (layout_edges.cpp) are
// found by moving these arrays through the operators.
#include "reference/stream/tiles/cell_array.hpp"

#include "base/shared/checked.hpp"

#include <algorithm>

namespace monet::stream {

namespace {

/// Classes of iterations of a loop that are covered by the same parts. As in the reference, parts
/// beyond the end count as covering the last iteration.
struct LoopClasses {
  std::vector<std::uint32_t> of;                 ///< class by iteration
  std::vector<std::vector<std::uint32_t>> parts; ///< by class
};

LoopClasses classify(const Dim& dim, std::int64_t extent) {
  LoopClasses classes;
  const std::int64_t count = dim.padded / dim.tile;
  const std::int64_t inside = std::min(count, ceil_div(extent, dim.tile));
  for (std::int64_t part = 0; part < inside; ++part)
    classes.parts.push_back({static_cast<std::uint32_t>(part)});
  for (std::int64_t i = 0; i < extent; ++i)
    classes.of.push_back(static_cast<std::uint32_t>(std::min(i / dim.tile, inside - 1)));
  if (inside < count) {
    std::vector<std::uint32_t> last = classes.parts.back();
    for (std::int64_t part = inside; part < count; ++part)
      last.push_back(static_cast<std::uint32_t>(part));
    classes.of.back() = static_cast<std::uint32_t>(classes.parts.size());
    classes.parts.push_back(std::move(last));
  }
  return classes;
}

} // namespace

std::int64_t element_count(const Shape& shape) {
  std::int64_t count = 1;
  for (const std::int64_t size : shape)
    count = checked_multiply(count, size);
  return count;
}

CellArray CellArray::transposed(const std::vector<std::size_t>& order) const {
  const std::size_t rank = shape.size();
  std::vector<std::size_t> stride(rank, 1);
  for (std::size_t i = rank; i-- > 1;)
    stride[i - 1] = stride[i] * static_cast<std::size_t>(shape[i]);
  CellArray result;
  std::vector<std::size_t> step(rank);
  for (std::size_t i = 0; i < rank; ++i) {
    result.shape.push_back(shape[order[i]]);
    step[i] = stride[order[i]];
  }
  if (rank == 0 || cells.empty()) {
    result.cells = cells;
    return result;
  }
  result.cells.reserve(cells.size());
  Shape at(rank, 0);
  std::size_t from = 0;
  const auto length = static_cast<std::size_t>(result.shape[rank - 1]);
  while (result.cells.size() < cells.size()) {
    for (std::size_t k = 0; k < length; ++k)
      result.cells.push_back(cells[from + k * step[rank - 1]]);
    for (std::size_t i = rank - 1; i-- > 0;) {
      from += step[i];
      if (++at[i] < result.shape[i])
        break;
      from -= step[i] * static_cast<std::size_t>(at[i]);
      at[i] = 0;
    }
  }
  return result;
}

CellArray CellArray::picked(std::size_t axis, const std::vector<std::uint32_t>& places) const {
  std::size_t inner = 1;
  for (std::size_t i = axis + 1; i < shape.size(); ++i)
    inner *= static_cast<std::size_t>(shape[i]);
  const auto length = static_cast<std::size_t>(shape[axis]);
  const std::size_t outer = length * inner == 0 ? 0 : cells.size() / (length * inner);
  CellArray result;
  result.shape = shape;
  result.shape[axis] = static_cast<std::int64_t>(places.size());
  result.cells.reserve(outer * places.size() * inner);
  for (std::size_t o = 0; o < outer; ++o) {
    for (const std::uint32_t place : places) {
      if (place == kNone) {
        result.cells.insert(result.cells.end(), inner, kEmptyCell);
        continue;
      }
      const auto from = cells.begin() + static_cast<std::ptrdiff_t>((o * length + place) * inner);
      result.cells.insert(result.cells.end(), from, from + static_cast<std::ptrdiff_t>(inner));
    }
  }
  return result;
}

std::vector<std::vector<std::uint32_t>> tensor_axes(const Layer& layer, Operand operand) {
  std::vector<std::uint32_t> axes = layer.use(operand).axes;
  std::vector<std::vector<std::uint32_t>> result;
  if (layer.partial.empty()) {
    for (const std::uint32_t axis : axes)
      result.push_back({axis});
    return result;
  }
  // Convolutions and pooling: the equation has Y before X, ONNX has X before Y.
  const std::size_t spatial = std::min(layer.partial.size(), axes.size());
  std::reverse(axes.end() - static_cast<std::ptrdiff_t>(spatial), axes.end());
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const bool channel = i > 0 && i < axes.size() - spatial && layer.axis_name(axes[i - 1]) == "G";
    if (channel)
      result.back().push_back(axes[i]);
    else
      result.push_back({axes[i]});
  }
  return result;
}

std::optional<ProducedCells> ProducedCells::of(const Layer& layer, bool exact) {
  ProducedCells result;
  std::vector<std::vector<std::uint32_t>> axes;
  if (exact) {
    axes = tensor_axes(layer, Operand::O);
  } else {
    for (const std::uint32_t axis : layer.operands[0].axes)
      axes.push_back({axis});
  }
  std::vector<std::uint32_t>& loops = result.loops_;
  Shape extents;
  for (const std::vector<std::uint32_t>& axis : axes) {
    std::int64_t size = 1;
    for (const std::uint32_t dim : axis) {
      loops.push_back(dim);
      extents.push_back(exact ? layer.dims[dim].parsed : layer.dims[dim].size);
      size = checked_multiply(size, extents.back());
    }
    result.array.shape.push_back(size);
  }
  std::vector<LoopClasses> classes;
  std::int64_t count = 1;
  for (const std::int64_t extent : extents) {
    if (extent > kMaxCells / count)
      return std::nullopt;
    count *= extent;
  }
  for (std::size_t i = 0; i < loops.size(); ++i)
    classes.push_back(classify(layer.dims[loops[i]], extents[i]));

  std::vector<std::uint32_t> weight(loops.size(), 1);
  for (std::size_t i = loops.size(); i-- > 1;)
    weight[i - 1] = weight[i] * static_cast<std::uint32_t>(classes[i].parts.size());
  // Built from the innermost loop outwards: each loop repeats the inner cells per iteration.
  std::vector<std::uint32_t> inner{0};
  for (std::size_t i = loops.size(); i-- > 0;) {
    std::vector<std::uint32_t> cells;
    cells.reserve(inner.size() * classes[i].of.size());
    for (const std::uint32_t part : classes[i].of) {
      for (const std::uint32_t cell : inner)
        cells.push_back(cell + weight[i] * part);
    }
    inner = std::move(cells);
  }
  result.array.cells = std::move(inner);
  std::vector<std::vector<std::vector<std::uint32_t>>> by_loop;
  for (const LoopClasses& list : classes)
    by_loop.push_back(list.parts);
  result.set_tiles(layer, by_loop);
  return result;
}

void ProducedCells::set_tiles(const Layer& layer,
                              const std::vector<std::vector<std::vector<std::uint32_t>>>& parts) {
  const std::vector<std::vector<std::uint32_t>> offsets = part_offsets(layer);
  // Along loops that the output lacks, only complete tiles write results.
  std::vector<std::uint32_t> lacking;
  for (std::uint32_t dim = 0; dim < layer.dims.size(); ++dim) {
    if (std::ranges::find(loops_, dim) == loops_.end())
      lacking.push_back(dim);
  }
  const std::vector<std::uint32_t> complete = combinations(layer, lacking, true);
  bool shared = complete.size() > 1;
  std::size_t cells = 1;
  for (const auto& classes : parts)
    cells *= classes.size();
  first_.push_back(0);
  std::vector<std::size_t> at(parts.size(), 0);
  std::vector<std::uint32_t> sums, longer;
  for (std::size_t cell = 0; cell < cells; ++cell) {
    sums = complete;
    for (std::size_t i = 0; i < parts.size(); ++i) {
      longer.clear();
      for (const std::uint32_t part : parts[i][at[i]]) {
        for (const std::uint32_t sum : sums)
          longer.push_back(sum + offsets[loops_[i]][part]);
      }
      shared = shared || parts[i][at[i]].size() > 1;
      std::swap(sums, longer);
    }
    std::ranges::sort(sums);
    tiles_.insert(tiles_.end(), sums.begin(), sums.end());
    first_.push_back(static_cast<std::uint32_t>(tiles_.size()));
    for (std::size_t i = parts.size(); i-- > 0;) {
      if (++at[i] < parts[i].size())
        break;
      at[i] = 0;
    }
  }
  if (shared)
    set_slots(layer);
}

void ProducedCells::set_slots(const Layer& layer) {
  // Tiles are placed in order; a tile whose cells include an occupied one opens the next slot.
  std::vector<std::vector<std::uint32_t>> cells_of(layer.tiles);
  for (std::uint32_t cell = 0; cell < cells(); ++cell) {
    for (const std::uint32_t tile : tiles(cell))
      cells_of[tile].push_back(cell);
  }
  slots_.assign(layer.tiles, 0);
  std::vector<std::uint32_t> occupied(cells(), kNone); // last slot that fills the cell
  std::uint32_t slot = 0;
  for (std::uint32_t tile = 0; tile < layer.tiles; ++tile) {
    const auto& mine = cells_of[tile];
    if (std::ranges::any_of(mine, [&](std::uint32_t cell) { return occupied[cell] == slot; }))
      ++slot;
    for (const std::uint32_t cell : mine)
      occupied[cell] = slot;
    slots_[tile] = slot;
  }
}

} // namespace monet::stream

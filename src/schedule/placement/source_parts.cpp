// Cuts tensors without producer into the parts that tiles read; pieces.cpp numbers them after all
// other pieces.
#include "schedule/placement/source_parts.hpp"

#include "tiling/shared/grid.hpp"

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>

namespace monet {

namespace {

/// Grid of the borders of some boxes. Unusable, with fits() false, if it has too many cells.
class BorderGrid {
public:
  explicit BorderGrid(const std::vector<Box>& boxes) : borders_(boxes.front().size()) {
    std::int64_t cells = 1;
    for (std::size_t a = 0; a < borders_.size(); ++a) {
      auto& borders = borders_[a];
      for (const Box& box : boxes) {
        borders.push_back(box[a].begin);
        borders.push_back(box[a].end);
      }
      std::sort(borders.begin(), borders.end());
      borders.erase(std::unique(borders.begin(), borders.end()), borders.end());
      const std::int64_t most = kMaxCellsPerBox * std::ssize(boxes) + kAlwaysTried;
      if (std::ssize(borders) > most || cells > most) {
        fits_ = false;
        return;
      }
      cells *= std::max<std::int64_t>(1, std::ssize(borders) - 1);
      fits_ = cells <= most;
    }
    number_.assign(fits_ ? static_cast<std::size_t>(cells) : 0, kNone);
    std::int64_t touched = 0;
    for (const Box& box : boxes)
      touched += cells_in(box);
    fits_ = fits_ && touched <= kMaxCellsPerBox * std::ssize(boxes) + kAlwaysTried;
  }

  bool fits() const { return fits_; }

  /// Calls `visit(box, number)` for every cell in the box. `number` is kNone until `visit` sets it.
  template <class Visit>
  void visit(const Box& box, Visit visit) {
    Box cell(box.size());
    visit_axis(box, 0, 0, cell, visit);
  }

private:
  static constexpr std::int64_t kMaxCellsPerBox = 4; ///< on average; else boxes stay whole
  static constexpr std::int64_t kAlwaysTried = 64;

  std::size_t border(std::size_t axis, std::int64_t at) const {
    const auto& borders = borders_[axis];
    return static_cast<std::size_t>(std::lower_bound(borders.begin(), borders.end(), at) -
                                    borders.begin());
  }

  std::int64_t cells_in(const Box& box) const {
    std::int64_t cells = 1;
    for (std::size_t a = 0; a < box.size(); ++a)
      cells *= static_cast<std::int64_t>(border(a, box[a].end) - border(a, box[a].begin));
    return cells;
  }

  // Recursion over the axes of a tensor.
  template <class Visit>
  void visit_axis(const Box& box, std::size_t axis, std::size_t index, Box& cell, Visit& visit) {
    if (axis == box.size()) {
      visit(cell, number_[index]);
      return;
    }
    const auto& borders = borders_[axis];
    const std::size_t segments = borders.size() - 1;
    const std::size_t last = border(axis, box[axis].end);
    for (std::size_t i = border(axis, box[axis].begin); i < last; ++i) {
      cell[axis] = {borders[i], borders[i + 1]};
      visit_axis(box, axis + 1, index * segments + i, cell, visit);
    }
  }

  std::vector<std::vector<std::int64_t>> borders_; ///< per axis, ascending
  std::vector<std::uint32_t> number_;              ///< per cell
  bool fits_ = true;
};

/// Grid of the last reads before `first` that fit into one grid, at least one read. Moves `first`
/// to the first of them. nullopt if they read nothing.
std::optional<BorderGrid> grid_up_to(const std::vector<std::vector<Box>>& boxes,
                                     std::size_t& first) {
  std::optional<BorderGrid> grid;
  std::vector<Box> distinct;
  for (const std::size_t last = first; first > 0; --first) {
    std::vector<Box> more = distinct;
    std::ranges::copy_if(boxes[first - 1], std::back_inserter(more),
                         [](const Box& box) { return volume(box) > 0; });
    std::ranges::sort(more);
    more.erase(std::unique(more.begin(), more.end()), more.end());
    std::optional<BorderGrid> wider;
    if (!more.empty())
      wider.emplace(more);
    if (first < last && wider && !wider->fits())
      break;
    distinct = std::move(more);
    grid = std::move(wider);
  }
  return grid;
}

} // namespace

SourceParts::SourceParts(const TileGraph& tiles, const Graph& graph, bool with_boxes)
    : tiles_(tiles), with_boxes_(with_boxes), first_read_(1, 0) {
  std::vector<std::vector<std::uint32_t>> readers(graph.tensors().size());
  std::uint32_t cells = 0;
  for (std::size_t o = 0; o < tiles.operators.size(); ++o) {
    const auto& operands = graph.op(OpId(o)).nest.operands;
    const OperatorTiling& tiling = tiles.operators[o];
    for (std::size_t i = 0; i < operands.size(); ++i) {
      const Access& access = operands[i];
      if (access.mode != AccessMode::read || graph.tensor(access.tensor).producer)
        continue;
      Read read{access.tensor, static_cast<std::uint32_t>(i), {}, 1, cells};
      read.strides.resize(tiling.cuts.size(), 0);
      for (std::size_t c = tiling.cuts.size(); c-- > 0;) {
        if (!moved_by(access, tiling.cuts[c].dim))
          continue;
        read.strides[c] = read.cells;
        read.cells *= tiling.cuts[c].count; // at most one cell per tile
      }
      cells += read.cells;
      readers[access.tensor.index()].push_back(static_cast<std::uint32_t>(reads_.size()));
      reads_.push_back(std::move(read));
      op_of_.push_back(OpId(o));
    }
    first_read_.push_back(static_cast<std::uint32_t>(reads_.size()));
  }
  cell_begin_.resize(cells);
  for (const auto& reads : readers) {
    if (!reads.empty())
      add_parts(reads, graph);
  }
}

/// Boxes of the tensor that tiles read, for each read.
std::vector<std::vector<Box>> SourceParts::boxes_of(const std::vector<std::uint32_t>& reads,
                                                    const Graph& graph) {
  std::vector<std::vector<Box>> boxes;
  for (const std::uint32_t r : reads) {
    const Read& read = reads_[r];
    const OperatorTiling& tiling = tiles_.operators[op_of_[r].index()];
    const Access& access = graph.op(op_of_[r]).nest.operands[read.operand];
    std::vector<Box>& own = boxes.emplace_back();
    for (std::uint32_t cell = 0; cell < read.cells; ++cell) {
      std::uint32_t tile = tiling.first;
      std::uint32_t below = tiling.size();
      for (std::size_t c = 0; c < tiling.cuts.size(); ++c) {
        below /= tiling.cuts[c].count;
        if (read.strides[c] > 0)
          tile += below * (cell / read.strides[c] % tiling.cuts[c].count);
      }
      tiles_.ranges(TileId(tile), ranges_);
      own.push_back(region(access, ranges_, graph.tensor(read.tensor).shape));
    }
  }
  return boxes;
}

/// Adds the parts of one tensor. Readers whose borders would cut each other's boxes into too many
/// parts have separate parts. Readers are grouped from the last one on, since neighbours share
/// most.
void SourceParts::add_parts(const std::vector<std::uint32_t>& reads, const Graph& graph) {
  const TensorId id = reads_[reads.front()].tensor;
  const std::vector<std::vector<Box>> boxes = boxes_of(reads, graph);
  std::map<Box, std::uint32_t> known; // parts of all readers
  const auto part_of = [&](const Box& box) {
    const auto [found, added] = known.emplace(box, static_cast<std::uint32_t>(parts_.size()));
    if (added)
      parts_.push_back({id, storage_of(graph.tensor(id).type, volume(box))});
    if (added && with_boxes_)
      box_of_part_.push_back(box);
    return found->second;
  };
  for (std::size_t last = reads.size(); last > 0;) {
    std::size_t first = last;
    std::optional<BorderGrid> grid = grid_up_to(boxes, first);
    for (std::size_t i = first; i < last; ++i) {
      for (std::uint32_t cell = 0; cell < boxes[i].size(); ++cell) {
        const Box& box = boxes[i][cell];
        const auto begin = static_cast<std::uint32_t>(cell_parts_.size());
        cell_begin_[reads_[reads[i]].first_cell + cell] = begin;
        cell_parts_.push_back(0); // the number of parts, then the parts
        if (volume(box) > 0 && grid->fits()) {
          grid->visit(box, [&](const Box& part, std::uint32_t& number) {
            if (number == kNone)
              number = part_of(part);
            cell_parts_.push_back(number);
          });
        } else if (volume(box) > 0) {
          cell_parts_.push_back(part_of(box));
        }
        cell_parts_[begin] = static_cast<std::uint32_t>(cell_parts_.size()) - begin - 1;
      }
    }
    last = first;
  }
}

std::span<const std::uint32_t> SourceParts::parts_of(const Read& read, TileId tile) const {
  const OperatorTiling& tiling = tiles_.operators[tiles_.tiles[tile.index()].op.index()];
  std::uint32_t cell = read.first_cell;
  if (read.cells > 1) {
    std::uint32_t below = tiling.size();
    std::uint32_t index = tile.value - tiling.first;
    for (std::size_t c = 0; c < tiling.cuts.size(); ++c) {
      below /= tiling.cuts[c].count;
      cell += read.strides[c] * (index / below);
      index %= below;
    }
  }
  const std::uint32_t* begin = cell_parts_.data() + cell_begin_[cell];
  return {begin + 1, *begin};
}

} // namespace monet

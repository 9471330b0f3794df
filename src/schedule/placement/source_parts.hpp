// Parts of tensors without producer (weights, inputs, states), as tiles read them.
//
// If tiles read overlapping boxes of such a tensor, the boxes are cut at each other's borders.
// Every box is then a whole number of parts, and a part on a core is not fetched again for another
// box. Operators that would cut each other's boxes too often have separate parts.
#pragma once

#include "monet/tiling/tiling.hpp"

#include <cstdint>
#include <span>
#include <vector>

namespace monet {

/// All parts of tensors without producer, and the parts that each tile reads.
class SourceParts {
public:
  struct Part {
    TensorId tensor;
    Bits bits;
  };
  /// An operand that reads a tensor without producer. Tiles that differ only in loops that the
  /// operand lacks read the same box: they are in the same cell.
  struct Read {
    TensorId tensor;
    std::uint32_t operand = 0;          ///< index into the nest's operands
    std::vector<std::uint32_t> strides; ///< per cut of the operator: cells per step
    std::uint32_t cells = 1;
    std::uint32_t first_cell = 0;
  };

  /// `with_boxes` must be true if box() is called.
  SourceParts(const TileGraph& tiles, const Graph& graph, bool with_boxes = false);

  const std::vector<Part>& parts() const { return parts_; }
  const Box& box(std::uint32_t part) const { return box_of_part_.at(part); }
  std::span<const Read> reads_of(OpId op) const {
    return {reads_.data() + first_read_[op.index()],
            first_read_[op.index() + 1] - first_read_[op.index()]};
  }
  /// Indices into parts() of the parts that the tile reads through the operand.
  std::span<const std::uint32_t> parts_of(const Read& read, TileId tile) const;

private:
  std::vector<std::vector<Box>> boxes_of(const std::vector<std::uint32_t>& reads,
                                         const Graph& graph);
  void add_parts(const std::vector<std::uint32_t>& reads, const Graph& graph);

  const TileGraph& tiles_;
  bool with_boxes_;
  std::vector<Part> parts_;
  std::vector<Box> box_of_part_; ///< empty without with_boxes_
  std::vector<Read> reads_;
  std::vector<OpId> op_of_;               ///< per read
  std::vector<std::uint32_t> first_read_; ///< per operator, and one more
  std::vector<std::uint32_t> cell_begin_; ///< per cell: index into cell_parts_
  std::vector<std::uint32_t> cell_parts_; ///< per cell: number of parts, then indices into parts_
  std::vector<Interval> ranges_;
};

} // namespace monet

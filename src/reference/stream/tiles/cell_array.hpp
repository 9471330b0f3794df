// Cell arrays: the tiles that produce each element of a tensor, tracked through layout operators.
#pragma once

#include "reference/stream/tiles/layer_parser.hpp"
#include "reference/stream/tiles/stages.hpp"

namespace monet::stream {

/// Maximum number of elements of a tensor that is tracked element by element.
inline constexpr std::uint32_t kMaxCells = 1U << 24;
inline constexpr std::uint32_t kEmptyCell = kNone;

/// A tensor whose elements are cells. A cell is a set of tiles that write the same elements.
struct CellArray {
  Shape shape;
  std::vector<std::uint32_t> cells; ///< row-major

  CellArray transposed(const std::vector<std::size_t>& order) const;
  /// The elements at positions `places` of an axis; kNone yields empty cells.
  CellArray picked(std::size_t axis, const std::vector<std::uint32_t>& places) const;
};
std::int64_t element_count(const Shape& shape);

/// The output of a layer as an array of cells.
class ProducedCells {
public:
  /// The cells of a layer's output; nullopt for more than kMaxCells elements. `exact`: axes and
  /// sizes of ONNX; otherwise of the reference (rounded sizes, spatial axes in equation order).
  static std::optional<ProducedCells> of(const Layer& layer, bool exact);

  CellArray array;
  /// Tiles of a cell, as indices within the layer.
  std::span<const std::uint32_t> tiles(std::uint32_t cell) const {
    return {tiles_.data() + first_[cell], tiles_.data() + first_[cell + 1]};
  }
  std::size_t cells() const { return first_.size() - 1; }
  /// Slot of a tile among those that write the same elements. The reference stores tiles in slots
  /// of a dense array, and opens a new slot for all later tiles if an element is occupied.
  std::uint32_t slot(std::uint32_t tile) const { return slots_.empty() ? 0 : slots_[tile]; }

private:
  void set_tiles(const Layer& layer,
                 const std::vector<std::vector<std::vector<std::uint32_t>>>& parts);
  void set_slots(const Layer& layer);

  std::vector<std::uint32_t> loops_; ///< of the array, outermost first
  std::vector<std::uint32_t> first_, tiles_;
  std::vector<std::uint32_t> slots_; ///< by tile; empty: all 0
};

/// Axes of a layer's operand in ONNX's order: each is one loop, or G with K or C.
std::vector<std::vector<std::uint32_t>> tensor_axes(const Layer& layer, Operand operand);

} // namespace monet::stream

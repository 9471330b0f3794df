// Which tiles make each element of a tensor, carried through layout operators.
#pragma once

#include "reference/stream/tiles/layer_parser.hpp"
#include "reference/stream/tiles/stages.hpp"

namespace monet::stream {

/// Elements of larger tensors are not followed one by one.
inline constexpr std::uint32_t kMaxCells = 1U << 24;
inline constexpr std::uint32_t kEmptyCell = kNone;

/// A tensor whose elements are cells: sets of tiles that write the same elements.
struct CellArray {
  Shape shape;
  std::vector<std::uint32_t> cells; ///< row-major

  CellArray transposed(const std::vector<std::size_t>& order) const;
  /// Elements at these places of an axis; kNone gives empty cells.
  CellArray picked(std::size_t axis, const std::vector<std::uint32_t>& places) const;
};
std::int64_t element_count(const Shape& shape);

/// The output of a layer, as an array of cells.
class ProducedCells {
public:
  /// `exact`: axes and sizes as in ONNX; else as the reference has them, rounded sizes and spatial
  /// axes in the order of the equation. nullopt for more than kMaxCells elements.
  static std::optional<ProducedCells> of(const Layer& layer, bool exact);

  CellArray array;
  /// Tiles of a cell, as indices in the layer.
  std::span<const std::uint32_t> tiles(std::uint32_t cell) const {
    return {tiles_.data() + first_[cell], tiles_.data() + first_[cell + 1]};
  }
  std::size_t cells() const { return first_.size() - 1; }
  /// Place of a tile among those that write the same elements: the reference keeps them in layers
  /// of a dense array, and opens a new layer for all later tiles when one is occupied.
  std::uint32_t slot(std::uint32_t tile) const { return slots_.empty() ? 0 : slots_[tile]; }

private:
  void set_tiles(const Layer& layer,
                 const std::vector<std::vector<std::vector<std::uint32_t>>>& parts);
  void set_slots(const Layer& layer);

  std::vector<std::uint32_t> loops_; ///< of the array, outermost first
  std::vector<std::uint32_t> first_, tiles_;
  std::vector<std::uint32_t> slots_; ///< by tile; empty: all 0
};

/// Axes of a layer's output in ONNX's order: each is one loop, or G and K together.
std::vector<std::vector<std::uint32_t>> tensor_axes(const Layer& layer, Operand operand);

} // namespace monet::stream

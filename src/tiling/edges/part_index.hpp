// From tile numbers to parts of loops and back.
#pragma once

#include "monet/tiling/tiling.hpp"

#include <cstdint>
#include <span>
#include <vector>

namespace monet {

/// A tile is one part of every loop. Its number within the operator is a sum over the loops of what
/// the part contributes.
class PartIndex {
public:
  explicit PartIndex(const OperatorTiling& tiling);

  const std::vector<std::uint32_t>& cut_dims() const { return cut_dims_; }
  bool is_cut(std::size_t dim) const { return !offsets_[dim].empty(); }
  std::uint32_t parts(std::size_t dim) const {
    return is_cut(dim) ? static_cast<std::uint32_t>(offsets_[dim].size()) : 1U;
  }
  /// What a part of the loop contributes to the tile's number.
  std::uint32_t offset(std::size_t dim, std::uint32_t part) const {
    return is_cut(dim) ? offsets_[dim][part] : 0U;
  }
  /// The parts of a tile, given by its number within the operator.
  void parts_of(std::uint32_t number, std::span<std::uint32_t> parts) const;

private:
  std::vector<LoopCut> cuts_;
  std::uint32_t tiles_ = 1;
  std::vector<std::uint32_t> cut_dims_;             ///< loops in more than one part
  std::vector<std::vector<std::uint32_t>> offsets_; ///< [dim][part]; empty for whole loops
};

/// Every choice of one part for each of some loops, the last loop changing fastest.
class PartCombos {
public:
  PartCombos(const PartIndex& index, std::vector<std::uint32_t> dims);

  const std::vector<std::uint32_t>& dims() const { return dims_; }
  std::uint32_t size() const { return size_; }
  std::uint32_t combo_of(std::span<const std::uint32_t> parts) const;
  /// Fills in the parts of the combination's loops.
  void parts_of(std::uint32_t combo, std::span<std::uint32_t> parts) const;
  /// What the combination contributes to the tile's number.
  std::uint32_t offset(std::uint32_t combo) const { return offsets_[combo]; }

private:
  std::vector<std::uint32_t> dims_;
  std::vector<std::uint32_t> counts_;
  std::vector<std::uint32_t> offsets_;
  std::uint32_t size_ = 1;
};

} // namespace monet

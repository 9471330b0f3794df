// From tile numbers to parts of loops and back; what the tiles of an operator write of a tensor, as
// a product of independent groups of axes.
#pragma once

#include "monet/tiling/tiling.hpp"
#include "monet/workload/graph.hpp"

#include <cstdint>
#include <optional>
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
  std::uint32_t size() const { return static_cast<std::uint32_t>(offsets_.size()); }
  std::uint32_t combo_of(std::span<const std::uint32_t> parts) const;
  /// Fills in the parts of the combination's loops.
  void parts_of(std::uint32_t combo, std::span<std::uint32_t> parts) const;
  /// What the combination contributes to the tile's number.
  std::uint32_t offset(std::uint32_t combo) const { return offsets_[combo]; }

private:
  std::vector<std::uint32_t> dims_;
  std::vector<std::uint32_t> counts_;
  std::vector<std::uint32_t> offsets_;
};

/// Axes that the same cut loops move. A tile's region is one combination's box in every group.
struct WrittenGroup {
  std::vector<std::uint32_t> axes;
  PartCombos combos;                ///< of the loops that move the axes
  std::vector<Interval> boxes;      ///< [combo * axes.size() + i]
  std::vector<std::uint32_t> order; ///< combinations by where they begin on the first axis
  bool sorted_ends = true;          ///< in that order, the ends on the first axis do not go back
  bool recomputed = false; ///< one axis, of which several combinations compute the same elements

  std::span<const Interval> box(std::uint32_t combo) const {
    return {boxes.data() + combo * axes.size(), axes.size()};
  }
};

/// Which combinations of one group a box needs.
struct Overlap {
  std::uint32_t combo = 0;
  std::int64_t volume = 0; ///< of the overlap, over the group's axes
};

struct WrittenGrid {
  std::vector<WrittenGroup> groups;          ///< every axis of the tensor is in one
  PartCombos repeats;                        ///< of the cut loops that move no axis: a reduction
  std::vector<std::uint32_t> repeat_offsets; ///< what these contribute to a tile, ascending

  /// Tile number of the last that adds into a region, less what the groups contribute.
  std::uint32_t last_repeat() const { return repeat_offsets.back(); }
};

/// nullopt when the operator's nest does not say what it writes of the tensor.
std::optional<WrittenGrid> written_grid(const Operator& op, const OperatorTiling& tiling,
                                        const PartIndex& index, TensorId id, const Tensor& tensor);

/// Combinations that together hold what of `box` is written, as few as possible where they overlap:
/// those of `preferred` alone when they hold all of it. `box` is over all axes of the tensor.
void find_overlaps(const WrittenGroup& group, std::span<const Interval> box,
                   std::span<const std::uint32_t> preferred, std::vector<Overlap>& overlaps);

} // namespace monet

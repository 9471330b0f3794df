// Conversion between tile numbers and parts of loops, and the regions of a tensor that an
// operator's tiles write, as a product of independent groups of axes.
#pragma once

#include "monet/tiling/tiling.hpp"
#include "monet/workload/graph.hpp"

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace monet {

/// Converts between tile numbers and parts of loops. A tile is one part of every loop; its number
/// within the operator is the sum of one offset per loop.
class PartIndex {
public:
  explicit PartIndex(const OperatorTiling& tiling);

  const std::vector<std::uint32_t>& cut_dims() const { return cut_dims_; }
  bool is_cut(std::size_t dim) const { return !offsets_[dim].empty(); }
  std::uint32_t parts(std::size_t dim) const {
    return is_cut(dim) ? static_cast<std::uint32_t>(offsets_[dim].size()) : 1U;
  }
  /// Offset that a part of the loop adds to the tile number.
  std::uint32_t offset(std::size_t dim, std::uint32_t part) const {
    return is_cut(dim) ? offsets_[dim][part] : 0U;
  }
  /// Computes the part of each cut loop from the tile's number within the operator.
  void parts_of(std::uint32_t number, std::span<std::uint32_t> parts) const;

private:
  std::vector<LoopCut> cuts_;
  std::uint32_t tiles_ = 1;
  std::vector<std::uint32_t> cut_dims_;             ///< loops in more than one part
  std::vector<std::vector<std::uint32_t>> offsets_; ///< [dim][part]; empty for whole loops
};

/// All combinations of one part of each loop in `dims`; the last loop changes fastest.
class PartCombos {
public:
  PartCombos(const PartIndex& index, std::vector<std::uint32_t> dims);

  const std::vector<std::uint32_t>& dims() const { return dims_; }
  std::uint32_t size() const { return static_cast<std::uint32_t>(offsets_.size()); }
  std::uint32_t combo_of(std::span<const std::uint32_t> parts) const;
  /// Sets the parts of the combination's loops.
  void parts_of(std::uint32_t combo, std::span<std::uint32_t> parts) const;
  /// Offset that the combination adds to the tile number.
  std::uint32_t offset(std::uint32_t combo) const { return offsets_[combo]; }

private:
  std::vector<std::uint32_t> dims_;
  std::vector<std::uint32_t> counts_;
  std::vector<std::uint32_t> offsets_;
};

/// Axes that the same cut loops move. A tile's region is the product of one combination's box per
/// group.
struct WrittenGroup {
  std::vector<std::uint32_t> axes;
  PartCombos combos;                ///< over the loops that move the axes
  std::vector<Interval> boxes;      ///< [combo * axes.size() + i]
  std::vector<std::uint32_t> order; ///< combinations, sorted by begin on the first axis
  bool sorted_ends = true;          ///< true if this order also sorts the ends
  bool recomputed = false;          ///< a single axis on which combinations overlap

  std::span<const Interval> box(std::uint32_t combo) const {
    return {boxes.data() + combo * axes.size(), axes.size()};
  }
};

/// A combination of one group that a box meets.
struct Overlap {
  std::uint32_t combo = 0;
  std::int64_t volume = 0; ///< elements of the overlap, over the group's axes
};

/// Regions of one tensor that the tiles of an operator write.
struct WrittenGrid {
  std::vector<WrittenGroup> groups;          ///< each axis of the tensor is in one group
  PartCombos repeats;                        ///< of the cut loops that move no axis: a reduction
  std::vector<std::uint32_t> repeat_offsets; ///< their offsets of the tile number, ascending

  /// Offset of the last tile that adds into a region, without the offsets of the groups.
  std::uint32_t last_repeat() const { return repeat_offsets.back(); }
};

/// Regions of the tensor that the operator's tiles write; nullopt if the nest does not contain the
/// write.
std::optional<WrittenGrid> written_grid(const Operator& op, const OperatorTiling& tiling,
                                        const PartIndex& index, TensorId id, const Tensor& tensor);

/// Finds combinations that together contain every written element of `box`, a box over all axes of
/// the tensor. If combinations overlap: as few as possible, or only `preferred` ones if these
/// suffice.
void find_overlaps(const WrittenGroup& group, std::span<const Interval> box,
                   std::span<const std::uint32_t> preferred, std::vector<Overlap>& overlaps);

} // namespace monet

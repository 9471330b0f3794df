// The placement of a tensor on the ranks of one mesh axis, and its relation to cut loops. Used by
// all files of the partition.
#pragma once

#include "monet/workload/graph.hpp"

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace monet::mesh {

enum class PlacementKind {
  whole,   ///< every rank has all of it
  shard,   ///< every rank has a part
  partial, ///< every rank has a term of the sum
  largest, ///< every rank has a candidate for the maximum
};

struct Placement {
  PlacementKind kind = PlacementKind::whole;
  std::size_t dim = 0;    ///< sharded axis
  std::int64_t outer = 1; ///< the sharded axis is [outer][ranks][rest]

  bool is(PlacementKind wanted) const { return kind == wanted; }
  /// Whether the ranks' values must be reduced before the tensor is known.
  bool is_terms() const { return is(PlacementKind::partial) || is(PlacementKind::largest); }
  friend bool operator==(const Placement&, const Placement&) = default;
};
inline constexpr Placement kWhole{};
inline constexpr Placement kPartial{.kind = PlacementKind::partial};
inline constexpr Placement kLargest{.kind = PlacementKind::largest};
constexpr Placement shard_of(std::size_t dim, std::int64_t outer = 1) {
  return {.kind = PlacementKind::shard, .dim = dim, .outer = outer};
}

/// A cut of a loop over the ranks. With iterations as [outer][ranks][rest], each rank runs one
/// index of the middle dimension.
struct LoopCut {
  std::size_t loop = 0;
  std::int64_t outer = 1;

  friend bool operator==(const LoopCut&, const LoopCut&) = default;
};

/// Whether an axis of the access has the loop.
bool has_term(const Access& access, std::size_t loop);
/// The placement of an operand if a loop of its nest is cut: a shard if an axis has the loop, whole
/// if none has it. Nullopt if the loop is not divisible, or if its iterations share elements or
/// interleave.
std::optional<Placement> placement_of(const LoopNest& nest, const Access& access,
                                      std::span<const std::int64_t> shape, const LoopCut& cut,
                                      std::int64_t ranks);
/// The cuts of loops that place an operand as `shard`.
std::vector<LoopCut> cuts_for(const LoopNest& nest, const Access& access,
                              std::span<const std::int64_t> shape, const Placement& shard,
                              std::int64_t ranks);
/// The nest of one rank. `shapes`: the whole shapes of the operands, in the nest's order.
LoopNest cut_nest(const LoopNest& nest, std::span<const std::vector<std::int64_t>> shapes,
                  const LoopCut& cut, std::int64_t ranks);
/// The shape of one rank's part of a tensor.
std::vector<std::int64_t> part_shape(std::vector<std::int64_t> shape, const Placement& placement,
                                     std::int64_t ranks);

} // namespace monet::mesh

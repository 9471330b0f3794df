// How a tensor lies on the ranks along one axis of the mesh, and how a cut loop cuts operands.
#pragma once

#include "monet/workload/graph.hpp"

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
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
  std::size_t dim = 0;    ///< of a shard
  std::int64_t outer = 1; ///< of a shard: the axis is [outer][ranks][rest]

  bool is(PlacementKind wanted) const { return kind == wanted; }
  friend bool operator==(const Placement&, const Placement&) = default;
};
inline constexpr Placement kWhole{};
inline constexpr Placement kPartial{.kind = PlacementKind::partial};
inline constexpr Placement kLargest{.kind = PlacementKind::largest};
constexpr Placement shard_of(std::size_t dim, std::int64_t outer = 1) {
  return {.kind = PlacementKind::shard, .dim = dim, .outer = outer};
}

/// A loop cut over the ranks: with its iterations as [outer][ranks][rest], a rank has one of the
/// middle ones.
struct LoopCut {
  std::size_t loop = 0;
  std::int64_t outer = 1;

  friend bool operator==(const LoopCut&, const LoopCut&) = default;
};

/// Some axis of the access has the loop.
bool has_term(const Access& access, std::size_t loop);
/// How an operand lies when its nest's loop is cut: a shard where an axis has the loop, whole where
/// none has. Nullopt where neither is true: the loop's iterations share elements or interleave.
std::optional<Placement> placement_of(const LoopNest& nest, const Access& access,
                                      std::span<const std::int64_t> shape, const LoopCut& cut,
                                      std::int64_t ranks);
/// Cuts of loops that give an operand this shard.
std::vector<LoopCut> cuts_for(const LoopNest& nest, const Access& access,
                              std::span<const std::int64_t> shape, const Placement& shard,
                              std::int64_t ranks);
/// The nest of one rank. `shapes` are the operands' whole ones, in the nest's order.
LoopNest cut_nest(const LoopNest& nest, std::span<const std::vector<std::int64_t>> shapes,
                  const LoopCut& cut, std::int64_t ranks);
/// Its part of a shape.
std::vector<std::int64_t> part_shape(std::vector<std::int64_t> shape, const Placement& placement,
                                     std::int64_t ranks);

} // namespace monet::mesh

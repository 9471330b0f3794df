// Relates cuts of loops to shards of operands, by the access maps of a loop nest. Used by
// choose.cpp, axis_pass.cpp and cost/kernels.cpp.
#include "cluster/partition/placement.hpp"

#include "monet/base/errors.hpp"

#include <algorithm>

namespace monet::mesh {

namespace {

/// The axis of an access that has a loop, and the loop's coefficient there.
struct LoopPlace {
  std::size_t dim = 0;
  std::int64_t coefficient = 0;
};

/// The place of a loop in an access, or nullopt if no axis has it. Sets `twice` if several axes
/// have it, which rules out shards.
std::optional<LoopPlace> place_of(const Access& access, std::size_t loop, bool& twice) {
  std::optional<LoopPlace> found;
  for (std::size_t dim = 0; dim < access.axes.size(); ++dim) {
    for (const AffineTerm& term : access.axes[dim].terms) {
      if (term.dim != loop)
        continue;
      twice = twice || found.has_value();
      found = LoopPlace{dim, term.coefficient};
    }
  }
  return found;
}

/// Elements of an axis that all iterations of a loop span: coefficient times iterations.
std::int64_t block_of(const LoopNest& nest, std::size_t loop, std::int64_t coefficient) {
  return coefficient * nest.dims[loop].size;
}

/// The offset within a unit: the non-negative remainder of its division by `unit`.
std::int64_t offset_within(std::int64_t offset, std::int64_t unit) {
  return ((offset % unit) + unit) % unit;
}

/// Whether an axis consists of units of which every rank has one part. Faster loops and the offset
/// must stay within one step of the loop, and slower loops must step over whole units.
bool is_made_of(const LoopNest& nest, const AxisExpr& axis, std::size_t loop,
                std::int64_t coefficient, std::int64_t unit, std::int64_t extent) {
  if (axis.data_dependent || extent % unit != 0)
    return false;
  const std::int64_t block = block_of(nest, loop, coefficient);
  std::int64_t inner = offset_within(axis.offset, unit);
  for (const AffineTerm& term : axis.terms) {
    if (term.dim == loop)
      continue;
    if (term.coefficient >= block) {
      if (term.coefficient % unit != 0)
        return false;
    } else if (term.coefficient >= 0) {
      inner += term.coefficient * (nest.dims[term.dim].size - 1);
    } else {
      return false;
    }
  }
  return inner < coefficient;
}

} // namespace

bool has_term(const Access& access, std::size_t loop) {
  return std::ranges::any_of(access.axes,
                             [&](const AxisExpr& axis) { return has_loop(axis, loop); });
}

std::optional<Placement> placement_of(const LoopNest& nest, const Access& access,
                                      std::span<const std::int64_t> shape, const LoopCut& cut,
                                      std::int64_t ranks) {
  if (nest.dims[cut.loop].size % (cut.outer * ranks) != 0)
    return std::nullopt;
  if (access.opaque)
    return std::nullopt;
  bool twice = false;
  const auto place = place_of(access, cut.loop, twice);
  if (twice)
    return std::nullopt;
  if (!place)
    return kWhole;
  if (place->coefficient <= 0)
    return std::nullopt;
  const std::int64_t extent = shape[place->dim];
  const std::int64_t unit = block_of(nest, cut.loop, place->coefficient) / cut.outer;
  if (!is_made_of(nest, access.axes[place->dim], cut.loop, place->coefficient, unit, extent))
    return std::nullopt;
  return shard_of(place->dim, extent / unit);
}

std::vector<LoopCut> cuts_for(const LoopNest& nest, const Access& access,
                              std::span<const std::int64_t> shape, const Placement& shard,
                              std::int64_t ranks) {
  std::vector<LoopCut> cuts;
  if (access.opaque || access.axes.size() <= shard.dim)
    return cuts;
  const std::int64_t unit = shape[shard.dim] / shard.outer;
  for (const AffineTerm& term : access.axes[shard.dim].terms) {
    const std::int64_t block = block_of(nest, term.dim, term.coefficient);
    if (block <= 0 || unit <= 0 || block % unit != 0)
      continue;
    const LoopCut cut{term.dim, block / unit};
    if (placement_of(nest, access, shape, cut, ranks) == shard)
      cuts.push_back(cut);
  }
  return cuts;
}

LoopNest cut_nest(const LoopNest& nest, std::span<const std::vector<std::int64_t>> shapes,
                  const LoopCut& cut, std::int64_t ranks) {
  LoopNest made = nest;
  for (std::size_t i = 0; i < nest.operands.size(); ++i) {
    const Access& access = nest.operands[i];
    bool twice = false;
    const auto place = place_of(access, cut.loop, twice);
    internal_check(!twice, "a loop in two axes is cut");
    if (!place)
      continue;
    internal_check(place->dim < shapes[i].size(), "an access has more axes than its tensor");
    const std::int64_t block = block_of(nest, cut.loop, place->coefficient);
    AxisExpr& axis = made.operands[i].axes[place->dim];
    const std::int64_t within = offset_within(axis.offset, block / cut.outer);
    axis.offset = (axis.offset - within) / ranks + within;
    for (AffineTerm& term : axis.terms) {
      if (term.dim != cut.loop && term.coefficient >= block)
        term.coefficient /= ranks;
    }
  }
  made.dims[cut.loop].size /= ranks;
  return made;
}

std::vector<std::int64_t> part_shape(std::vector<std::int64_t> shape, const Placement& placement,
                                     std::int64_t ranks) {
  if (placement.is(PlacementKind::shard))
    shape[placement.dim] /= ranks;
  return shape;
}

} // namespace monet::mesh

// Decides whether a loop may be cut into disjoint parts, into parts that add up, or not at all. All
// cuts of the tiling stage are checked here.
#include "base/shared/checked.hpp"
#include "tiling/partition/split.hpp"

#include "monet/tiling/tiling.hpp"

#include <algorithm>

namespace monet {

namespace {

/// True if one step of `dim` on this axis is larger than the joint reach of the other loops.
bool separates(const AxisExpr& axis, const LoopNest& nest, std::size_t dim) {
  if (axis.data_dependent)
    return false;
  std::int64_t step = 0;
  std::int64_t reach = 0;
  for (const AffineTerm& term : axis.terms) {
    const std::int64_t size = term.coefficient < 0 ? -term.coefficient : term.coefficient;
    if (term.dim == dim) {
      step = size;
    } else {
      reach = checked_add(reach, checked_multiply(size, nest.dims[term.dim].size - 1));
    }
  }
  return step > reach;
}

/// True if iterations of the loop add into the same elements.
bool adds_up(const Access& access, std::size_t dim) {
  return std::ranges::all_of(access.axes, [&](const AxisExpr& axis) {
    if (axis.data_dependent)
      return access.mode == AccessMode::accumulate;
    return std::ranges::none_of(axis.terms, [&](const AffineTerm& term) {
      return term.dim == dim && term.coefficient != 0;
    });
  });
}

} // namespace

LoopUse loop_use(const LoopNest& nest, std::size_t dim) {
  if (nest.dims[dim].coupled)
    return LoopUse::never;
  LoopUse use = LoopUse::parallel;
  for (const Access& access : nest.operands) {
    if (access.mode == AccessMode::read)
      continue;
    if (access.opaque)
      return LoopUse::never;
    const bool separated = std::ranges::any_of(
        access.axes, [&](const AxisExpr& axis) { return separates(axis, nest, dim); });
    if (separated)
      continue;
    if (!adds_up(access, dim))
      return LoopUse::never;
    use = LoopUse::summed;
  }
  return use;
}

bool may_split(const LoopNest& nest, std::size_t dim) {
  return loop_use(nest, dim) == LoopUse::parallel;
}

bool may_slice(const LoopNest& nest, std::size_t dim) {
  return loop_use(nest, dim) != LoopUse::never;
}

} // namespace monet

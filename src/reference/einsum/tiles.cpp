// Computes tile sizes and compulsory traffic of Einsums. The enumeration of rows (rows.cpp) and the
// mapper (mapper.cpp) call this.
#include "reference/einsum/rows.hpp"

#include <algorithm>
#include <limits>

namespace monet::einsum {

namespace {

std::int64_t axis_size(const AxisExpr& axis, std::int64_t extent, const std::int64_t* tiles) {
  if (axis.data_dependent)
    return extent;
  std::int64_t size = 1;
  for (const AffineTerm& term : axis.terms)
    size += std::abs(term.coefficient) * (tiles[term.dim] - 1);
  return std::min(size, extent);
}

constexpr std::size_t kMaxTerms = 10;

/// Minimum total number of elements that tiles of any size hold along an axis. The total is concave
/// in the number of tiles of each rank, so the minimum has each rank cut fully or not at all.
std::int64_t min_held(const Shape& shape, const AxisExpr& axis, std::int64_t extent) {
  if (axis.data_dependent)
    return extent;
  if (axis.terms.size() > kMaxTerms)
    return 1;
  std::int64_t least = std::numeric_limits<std::int64_t>::max();
  for (std::uint32_t cut = 0; cut < 1U << axis.terms.size(); ++cut) {
    std::int64_t tiles = 1;
    std::int64_t size = 1;
    for (std::size_t t = 0; t < axis.terms.size(); ++t) {
      const AffineTerm& term = axis.terms[t];
      const std::int64_t bound = shape.bounds[term.dim];
      if ((cut >> t & 1U) != 0)
        tiles *= bound;
      else
        size += std::abs(term.coefficient) * (bound - 1);
    }
    least = std::min(least, tiles * std::min(size, extent));
  }
  return least;
}

} // namespace

int direct_axis(const Shape::Operand& operand, std::uint32_t rank) {
  int found = -1;
  for (std::size_t a = 0; a < operand.axes.size(); ++a) {
    const AxisExpr& axis = operand.axes[a];
    for (const AffineTerm& term : axis.terms) {
      if (term.dim != rank)
        continue;
      if (found >= 0 || axis.terms.size() != 1 || term.coefficient != 1 || axis.offset != 0 ||
          axis.data_dependent)
        return -1;
      found = static_cast<int>(a);
    }
  }
  return found;
}

std::int64_t tile_bits(const Shape::Operand& operand, const std::int64_t* tiles) {
  std::int64_t bits = operand.bits;
  for (std::size_t a = 0; a < operand.axes.size(); ++a)
    bits *= axis_size(operand.axes[a], operand.extents[a], tiles);
  return bits;
}

std::int64_t min_bits(const Shape& shape, std::size_t operand) {
  const Shape::Operand& o = shape.operands[operand];
  std::vector<int> axes_of(shape.bounds.size(), 0);
  bool diagonal = false; // whether a rank indexes several axes
  for (const AxisExpr& axis : o.axes) {
    for (const AffineTerm& term : axis.terms)
      diagonal = diagonal || ++axes_of[term.dim] > 1;
  }
  std::int64_t all = 1;
  std::int64_t most = 1;
  for (std::size_t a = 0; a < o.axes.size(); ++a) {
    const std::int64_t held = min_held(shape, o.axes[a], o.extents[a]);
    all *= held;
    most = std::max(most, held);
  }
  return o.bits * (diagonal ? most : all);
}

} // namespace monet::einsum

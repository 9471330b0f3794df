// Computes tile sizes, compulsory traffic and Pareto-optimal rows of Einsums. The enumeration of
// rows (rows.cpp) and the mapper (mapper.cpp) call this.
#include "reference/einsum/rows.hpp"

#include <algorithm>
#include <limits>
#include <numeric>

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

void keep_pareto(const std::vector<std::int64_t>& values, std::size_t stride, std::size_t columns,
                 std::vector<std::uint32_t>& order) {
  const std::size_t count = values.size() / stride;
  order.resize(count);
  std::iota(order.begin(), order.end(), 0U);
  const auto row = [&](std::uint32_t i) { return values.data() + i * stride; };
  std::ranges::sort(order, [&](std::uint32_t a, std::uint32_t b) {
    const auto [x, y] = std::mismatch(row(a), row(a) + columns, row(b));
    return x == row(a) + columns ? a < b : *x < *y;
  });
  std::size_t kept = 0;
  for (const std::uint32_t i : order) {
    const std::int64_t* candidate = row(i);
    bool dominated = false;
    const std::size_t oldest =
        columns == 2 && kept > 0 ? kept - 1 : 0; // two columns: only the last kept row matters
    for (std::size_t k = kept; k-- > oldest && !dominated;) {
      const std::int64_t* other = row(order[k]);
      std::size_t column = 1;
      while (column < columns && other[column] <= candidate[column])
        ++column;
      dominated = column == columns;
    }
    if (!dominated)
      order[kept++] = i;
  }
  order.resize(kept);
}

} // namespace monet::einsum

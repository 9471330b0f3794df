#include "reference/einsum/rows.hpp"

#include <algorithm>
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
        columns == 2 && kept > 0 ? kept - 1 : 0; // two columns: the last will do
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

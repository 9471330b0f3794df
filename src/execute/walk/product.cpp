// Inside, four rows by four reduced iterations are kept in registers.
#include "execute/walk/product.hpp"

#include "execute/walk/product_plan.hpp"

#include "monet/base/errors.hpp"
#include "monet/base/stop.hpp"

#include <algorithm>
#include <array>

namespace monet {

namespace {

constexpr std::int64_t kVectorChunk =
    512; ///< elements of the vector loop at a time: four rows fit L1
constexpr std::int64_t kRows = 4;
constexpr std::int64_t kUnroll = 4;

/// rows x reduced x vector: output rows += scalars (left) * `chunk` elements of vectors (right).
template <class Real, int kRowCount>
void multiply_rows(const ProductPlan& plan, const FactorPointers<Real>& at, const Strides& row,
                   const Strides& reduced, std::int64_t chunk) {
  const auto [output, scalars, vectors] = at;
  std::int64_t r = 0;
  for (; r + kUnroll <= plan.reduced_size; r += kUnroll) {
    Real a[kRowCount][kUnroll];
    for (int j = 0; j < kRowCount; ++j) {
      for (std::int64_t q = 0; q < kUnroll; ++q)
        a[j][q] = scalars[j * row.left + (r + q) * reduced.left];
    }
    const Real* b0 = vectors + r * reduced.right;
    const Real* b1 = b0 + reduced.right;
    const Real* b2 = b1 + reduced.right;
    const Real* b3 = b2 + reduced.right;
    for (int j = 0; j < kRowCount; ++j) {
      Real* __restrict out = output + j * row.output;
      for (std::int64_t v = 0; v < chunk; ++v) {
        out[v] =
            (((out[v] + a[j][0] * b0[v]) + a[j][1] * b1[v]) + a[j][2] * b2[v]) + a[j][3] * b3[v];
      }
    }
  }
  for (; r < plan.reduced_size; ++r) {
    const Real* b = vectors + r * reduced.right;
    for (int j = 0; j < kRowCount; ++j) {
      Real* __restrict out = output + j * row.output;
      const Real a = scalars[j * row.left + r * reduced.left];
      for (std::int64_t v = 0; v < chunk; ++v)
        out[v] += a * b[v];
    }
  }
}

/// Both factors have the vector loop (depth-wise convolutions), or neither.
template <class Real>
void multiply_pairs(const ProductPlan& plan, const FactorPointers<Real>& at, std::int64_t low,
                    std::int64_t high) {
  const std::int64_t step = plan.left_is_vector ? 1 : 0;
  for (std::int64_t d = low; d < high; ++d) {
    check_stop();
    Real* __restrict out = at.output + d * plan.by_row.output;
    for (std::int64_t r = 0; r < plan.reduced_size; ++r) {
      const Real* a = at.left + d * plan.by_row.left + r * plan.by_reduced.left;
      const Real* b = at.right + d * plan.by_row.right + r * plan.by_reduced.right;
      for (std::int64_t v = 0; v < plan.vector_size; ++v)
        out[v] += a[v * step] * b[v * step];
    }
  }
}

template <class Real>
void multiply_block(const ProductPlan& plan, const FactorPointers<Real>& at, std::int64_t low,
                    std::int64_t high) {
  if (plan.left_is_vector == plan.right_is_vector) {
    multiply_pairs(plan, at, low, high);
    return;
  }
  Strides row = plan.by_row;
  Strides reduced = plan.by_reduced;
  const Real* scalars = at.left;
  const Real* vectors = at.right;
  if (plan.left_is_vector) {
    std::swap(row.left, row.right);
    std::swap(reduced.left, reduced.right);
    std::swap(scalars, vectors);
  }
  const auto rows_from = [&](std::int64_t d, std::int64_t v) {
    return FactorPointers<Real>{at.output + d * row.output + v, scalars + d * row.left,
                                vectors + v};
  };
  for (std::int64_t v = 0; v < plan.vector_size; v += kVectorChunk) {
    const std::int64_t chunk = std::min(kVectorChunk, plan.vector_size - v);
    std::int64_t d = low;
    for (; d + kRows <= high; d += kRows) {
      check_stop();
      multiply_rows<Real, kRows>(plan, rows_from(d, v), row, reduced, chunk);
    }
    for (; d < high; ++d)
      multiply_rows<Real, 1>(plan, rows_from(d, v), row, reduced, chunk);
  }
}

} // namespace

void check_factors(const Graph& graph, const LoopNest& nest, std::size_t output, std::size_t left,
                   std::size_t right) {
  const std::array<std::size_t, 3> sizes{output, left, right};
  for (std::size_t k = 0; k < sizes.size(); ++k)
    internal_check(static_cast<std::int64_t>(sizes[k]) ==
                       element_count(graph.tensor(nest.operands.at(k).tensor)),
                   "a factor or a product has other numbers of values and elements");
}

template <class Real>
void multiply_accumulate(const Graph& graph, const LoopNest& nest, std::vector<Real>& output,
                         const std::vector<Real>& left, const std::vector<Real>& right, int jobs) {
  if (iterations(nest) == 0 || output.empty())
    return;
  check_factors(graph, nest, output.size(), left.size(), right.size());
  const ProductPlan plan = plan_product(graph, nest);
  with_packed(plan, output, left, right, jobs, [&](const FactorPointers<Real>& start) {
    for_each_block(plan, start, jobs,
                   [&](const FactorPointers<Real>& at, const ProductBlock& block) {
                     multiply_block(plan, at, block.low, block.high);
                   });
  });
}

template void multiply_accumulate<double>(const Graph&, const LoopNest&, std::vector<double>&,
                                          const std::vector<double>&, const std::vector<double>&,
                                          int);
template void multiply_accumulate<float>(const Graph&, const LoopNest&, std::vector<float>&,
                                         const std::vector<float>&, const std::vector<float>&, int);

} // namespace monet

// Rules of matrix products, listed in registry.cpp: MatMul with broadcast batch axes, Gemm, and
// com.microsoft.FusedMatMul with transpositions.
//
// O[b..., h, d, k] += I[b..., h, d, c] * W[b..., h, c, k]. Loops: the output's batch axes (B; B,H;
// B0,B1,...,H), D rows, C reduced axis, K columns. A one-dimensional operand lacks D or K.
#include "workload/operators/families.hpp"

#include <fmt/core.h>

namespace monet {

namespace {

/// Positions of an operand's batch axes, reduced axis, and free axis (D or K) if present.
struct Layout {
  std::vector<std::size_t> batch;
  std::size_t reduced = 0;
  std::optional<std::size_t> free;
};

/// Layout of an operand. `transposed` swaps the last two axes. `batch_first` is FusedMatMul's
/// transBatch: axis 0 is the matrix's first axis, followed by the batch axes.
Layout layout_of(std::size_t rank, bool is_left, bool transposed, bool batch_first) {
  Layout layout;
  if (rank == 1)
    return layout;
  std::size_t row = rank - 2;
  std::size_t column = rank - 1;
  if (batch_first)
    row = 0;
  for (std::size_t i = 0; i + 1 < rank; ++i) {
    if (i != row)
      layout.batch.push_back(i);
  }
  if (transposed)
    std::swap(row, column);
  layout.reduced = is_left ? column : row;
  layout.free = is_left ? row : column;
  return layout;
}

struct Product {
  std::size_t left_input = 0;
  std::size_t right_input = 1;
  Layout left;
  Layout right;
};

LoopNest build_product(const Graph& graph, const Operator& op, const Product& product,
                       std::optional<std::size_t> bias_input) {
  const auto& a = input_shape(graph, op, product.left_input);
  const auto& w = input_shape(graph, op, product.right_input);
  const auto& y = output_shape(graph, op, 0);
  const std::size_t free_axes = (product.left.free ? 1U : 0U) + (product.right.free ? 1U : 0U);
  if (y.size() < free_axes)
    fail(graph, op, "the output has too few axes");
  if (a[product.left.reduced] != w[product.right.reduced]) {
    fail(graph, op,
         fmt::format("the reduced axes have {} and {} elements", a[product.left.reduced],
                     w[product.right.reduced]));
  }
  const std::size_t batch_axes = y.size() - free_axes;
  if (product.left.batch.size() > batch_axes || product.right.batch.size() > batch_axes) {
    fail(graph, op, "an operand has more batch axes than the output");
  }
  LoopNestBuilder nest(graph, op, ComputeKind::mac);
  std::vector<LoopIndex> loops;
  for (std::size_t i = 0; i < batch_axes; ++i) {
    loops.push_back(nest.loop(batch_name(i, batch_axes), y[i]));
  }
  const std::vector<LoopIndex> batch = loops;
  std::optional<LoopIndex> d;
  std::optional<LoopIndex> k;
  if (product.left.free)
    loops.push_back(*(d = nest.loop("D", a[*product.left.free])));
  const LoopIndex c = nest.loop("C", a[product.left.reduced]);
  if (product.right.free)
    loops.push_back(*(k = nest.loop("K", w[*product.right.free])));

  const auto operand_axes = [&](const Integers& shape, const Layout& layout,
                                std::optional<LoopIndex> free) {
    Integers sizes;
    for (const std::size_t i : layout.batch)
      sizes.push_back(shape[i]);
    const std::vector<AxisExpr> batches = nest.broadcast(sizes, batch);
    std::vector<AxisExpr> axes(shape.size());
    for (std::size_t i = 0; i < batches.size(); ++i)
      axes[layout.batch[i]] = batches[i];
    axes[layout.reduced] = axis(c);
    if (layout.free)
      axes[*layout.free] = axis(*free);
    return axes;
  };
  nest.output(0, "O", axes_of(loops));
  nest.input(product.left_input, "I", operand_axes(a, product.left, d));
  nest.input(product.right_input, "W", operand_axes(w, product.right, k));
  if (bias_input)
    nest.inputs_over(loops, *bias_input, {"bias"});
  return nest.finish();
}

void require_matrix(const Graph& graph, const Operator& op, std::size_t input,
                    std::size_t min_rank) {
  if (input_shape(graph, op, input).size() < min_rank) {
    fail(graph, op, fmt::format("input {} has fewer than {} axes", input, min_rank));
  }
}

/// Nest of a matrix product; `flag(name)` reads an attribute of FusedMatMul.
template <class Flag>
LoopNest build_matmul_of(const Graph& graph, const Operator& op, std::size_t left,
                         std::size_t right, Flag flag) {
  require_matrix(graph, op, left, 1);
  require_matrix(graph, op, right, 1);
  const Product product{
      left, right,
      layout_of(input_shape(graph, op, left).size(), true, flag("transA"), flag("transBatchA")),
      layout_of(input_shape(graph, op, right).size(), false, flag("transB"), flag("transBatchB"))};
  return build_product(graph, op, product, std::nullopt);
}

bool unset(const char*) {
  return false;
}

} // namespace

LoopNest build_matmul(const Graph& graph, const Operator& op) {
  return build_matmul_of(graph, op, 0, 1, unset);
}

LoopNest build_qlinear_matmul(const Graph& graph, const Operator& op) {
  return build_matmul_of(graph, op, 0, 3, unset);
}

LoopNest build_gemm(const Graph& graph, const Operator& op) {
  const auto& a = input_shape(graph, op, 0);
  const auto& b = input_shape(graph, op, 1);
  if (a.size() != 2 || b.size() != 2) {
    fail(graph, op, fmt::format("matrices are expected, not {} and {} axes", a.size(), b.size()));
  }
  const bool transpose_a = op.attributes.integer("transA", 0) != 0;
  const bool transpose_b = op.attributes.integer("transB", 0) != 0;
  const Product product{0, 1, layout_of(2, true, transpose_a, false),
                        layout_of(2, false, transpose_b, false)};
  return build_product(graph, op, product, 2);
}

LoopNest build_fused_matmul(const Graph& graph, const Operator& op) {
  return build_matmul_of(graph, op, 0, 1,
                         [&](const char* name) { return op.attributes.integer(name, 0) != 0; });
}

} // namespace monet

// Matrix products: MatMul with broadcast batch axes, Gemm, and com.microsoft.FusedMatMul with its
// transpositions. O[b..., h, d, k] += I[b..., h, d, c] * W[b..., h, c, k]. Loops: the output's
// batch axes (B; B,H; B0,B1,...,H), then D rows, C the reduced axis, K columns. A one-dimensional
// operand has no D or no K.
#include "workload/operators/families.hpp"
#include "workload/operators/nest_builder.hpp"

#include <fmt/format.h>

#include <array>

namespace monet {

namespace {

/// Where one operand keeps its batch axes, its reduced axis and its free axis (D or K), if it has
/// one.
struct Layout {
  std::vector<std::size_t> batch;
  std::size_t reduced = 0;
  std::optional<std::size_t> free;
};

/// `transposed` swaps the last two axes; `batch_first` is FusedMatMul's transBatch: the matrix's
/// first axis is axis 0 and the batch axes follow it.
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

std::string batch_name(std::size_t index, std::size_t count) {
  if (count == 1)
    return "B";
  if (index + 1 == count)
    return "H";
  return count == 2 ? "B" : fmt::format("B{}", index);
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

  const auto operand_axes = [&](const std::vector<std::int64_t>& shape, const Layout& layout,
                                std::optional<LoopIndex> free) {
    std::vector<std::int64_t> sizes;
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
  std::vector<AxisExpr> out;
  for (const LoopIndex i : loops)
    out.push_back(axis(i));
  nest.output(0, "O", std::move(out));
  nest.input(product.left_input, "I", operand_axes(a, product.left, d));
  nest.input(product.right_input, "W", operand_axes(w, product.right, k));
  if (bias_input && has_input(op, *bias_input)) {
    nest.input(*bias_input, "bias", nest.broadcast(input_shape(graph, op, *bias_input), loops));
  }
  return nest.finish();
}

void require_matrix(const Graph& graph, const Operator& op, std::size_t input,
                    std::size_t least_rank) {
  if (input_shape(graph, op, input).size() < least_rank) {
    fail(graph, op, fmt::format("input {} has fewer than {} axes", input, least_rank));
  }
}

LoopNest build_matmul_of(const Graph& graph, const Operator& op, std::size_t left,
                         std::size_t right) {
  require_matrix(graph, op, left, 1);
  require_matrix(graph, op, right, 1);
  const Product product{left, right,
                        layout_of(input_shape(graph, op, left).size(), true, false, false),
                        layout_of(input_shape(graph, op, right).size(), false, false, false)};
  return build_product(graph, op, product, std::nullopt);
}

LoopNest build_matmul(const Graph& graph, const Operator& op) {
  return build_matmul_of(graph, op, 0, 1);
}

LoopNest build_qlinear_matmul(const Graph& graph, const Operator& op) {
  return build_matmul_of(graph, op, 0, 3);
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
  require_matrix(graph, op, 0, 1);
  require_matrix(graph, op, 1, 1);
  const auto flag = [&](const char* name) { return op.attributes.integer(name, 0) != 0; };
  const Product product{
      0, 1, layout_of(input_shape(graph, op, 0).size(), true, flag("transA"), flag("transBatchA")),
      layout_of(input_shape(graph, op, 1).size(), false, flag("transB"), flag("transBatchB"))};
  return build_product(graph, op, product, std::nullopt);
}

} // namespace

std::span<const OperatorRule> matmul_rules() {
  static constexpr std::array kRules{
      OperatorRule{"", "Gemm", &build_gemm, false},
      OperatorRule{"", "MatMul", &build_matmul, false},
      OperatorRule{"", "MatMulInteger", &build_matmul, false},
      OperatorRule{"", "QLinearMatMul", &build_qlinear_matmul, false},
      OperatorRule{"com.microsoft", "FusedMatMul", &build_fused_matmul, false},
      OperatorRule{"com.microsoft", "TransposeMatMul", &build_fused_matmul, false},
  };
  return kRules;
}

} // namespace monet

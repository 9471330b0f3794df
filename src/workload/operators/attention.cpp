// Rules of attention as one operator (FlashAttention), listed in registry.cpp: O = softmax(S) V
// with S = scale * Q K^T, row by row, so that the scores S are never stored.
//
// A mask is added to S. Where a condition equals attribute `fill_where`, S is replaced by `fill`:
// before the mask, or after it with `fill_last`. Each row also outputs lse, the logarithm of its
// sum of exponentials, from which the backward operator recomputes the scores.
//   Attention (Q [.., D, K], K [.., C, K], V [.., C, K], mask, condition)
//     -> O [.., D, K], lse [.., D]
//   AttentionGrad (dO, Q, K, V, O, lse, mask, condition) -> dQ, dK, dV
// Keys and values of a group of heads (Ainslie et al. 2023, "GQA") have size 1 along the group's
// axis, and their gradients are sums over it. Forward products over D, C and K are the scores Q K^T
// and O = P V. Backward products are the scores, dO V^T, dV = P^T dO, dQ = dS K and dK = dS^T Q. No
// result is final before the last step of K.
#include "workload/operators/families.hpp"

namespace monet {

namespace {

constexpr const char* kScores = ""; ///< no operand: the scores are not stored

/// Loops of attention, and axes that several operands share.
struct AttentionAxes {
  std::vector<AxisExpr> query;  ///< [.., D, K]
  std::vector<AxisExpr> key;    ///< [.., C, K]
  std::vector<AxisExpr> row;    ///< [.., D]
  std::vector<LoopIndex> score; ///< [.., D, C]
};

AttentionAxes attention_axes(const Graph& graph, const Operator& op, LoopNestBuilder& nest,
                             std::size_t query_input) {
  const auto& q = input_shape(graph, op, query_input);
  const auto& k = input_shape(graph, op, query_input + 1);
  const auto& v = input_shape(graph, op, query_input + 2);
  if (q.size() < 2 || k != v || q.size() != k.size() || q.back() != k.back())
    fail(graph, op, "queries [.., D, K] and keys and values [.., C, K] are expected");
  AttentionAxes axes;
  const std::size_t batch = q.size() - 2;
  for (std::size_t i = 0; i < batch; ++i) {
    if (q[i] != k[i] && k[i] != 1)
      fail(graph, op, "queries and keys have different batch axes");
    axes.score.push_back(nest.loop(batch_name(i, batch), q[i]));
    axes.key.push_back(k[i] == q[i] ? axis(axes.score.back()) : axis_fixed());
  }
  const LoopIndex d = nest.loop("D", q[batch]);
  const LoopIndex c = nest.loop("C", k[batch]);
  const LoopIndex inner = nest.loop("K", q.back());
  nest.couple(inner);
  axes.row = axes_of(axes.score);
  axes.row.push_back(axis(d));
  axes.query = axes.row;
  axes.query.push_back(axis(inner));
  axes.key.push_back(axis(c));
  axes.key.push_back(axis(inner));
  axes.score.push_back(d);
  axes.score.push_back(c);
  return axes;
}

} // namespace

LoopNest build_attention(const Graph& graph, const Operator& op) {
  LoopNestBuilder nest(graph, op, ComputeKind::mac);
  const AttentionAxes axes = attention_axes(graph, op, nest, 0);
  nest.output(0, "O", axes.query);
  nest.output(1, "lse", axes.row);
  nest.input(0, "I", axes.query);
  nest.inputs(1, {"W", "W2"}, axes.key);
  nest.inputs_over(axes.score, 3, {"mask", "condition"});
  nest.product(kScores, "I", "W");
  nest.product("O", kScores, "W2");
  return nest.finish();
}

LoopNest build_attention_grad(const Graph& graph, const Operator& op) {
  LoopNestBuilder nest(graph, op, ComputeKind::mac);
  const AttentionAxes axes = attention_axes(graph, op, nest, 1);
  nest.output(0, "O", axes.query);
  nest.outputs(1, {"dK", "dV"}, axes.key);
  nest.inputs(0, {"I", "Q"}, axes.query);
  nest.inputs(2, {"W", "W2"}, axes.key);
  nest.input(4, "result", axes.query);
  nest.input(5, "lse", axes.row);
  nest.inputs_over(axes.score, 6, {"mask", "condition"});
  nest.product(kScores, "Q", "W");
  nest.product(kScores, "I", "W2");
  nest.product("dV", kScores, "I");
  nest.product("O", kScores, "W");
  nest.product("dK", kScores, "Q");
  return nest.finish();
}

} // namespace monet

// Replaces MatMul-softmax-MatMul chains by ai.monet.Attention before differentiation.
#include "training_graph/build/rebuild.hpp"
#include "training_graph/build/step_builder.hpp"
#include "training_graph/forward/forward.hpp"
#include "workload/shared/operators.hpp"

#include <algorithm>
#include <numeric>

namespace monet {

namespace {

/// A chain of operators that computes softmax(scale * Q K^T, filled and masked) V.
struct Chain {
  TensorId query;
  TensorId key_transposed; ///< [.., K, C]
  TensorId value;
  double scale = 1.0;
  std::optional<TensorId> mask;  ///< added
  std::optional<TensorId> where; ///< condition
  double fill = 0.0;             ///< of scores where the condition is `fill_where`
  bool fill_where = false;
  bool fill_last = false; ///< after the mask was added
  std::vector<OpId> replaced;
};

class Matcher {
public:
  Matcher(const Graph& graph, std::vector<bool> trained)
      : graph_(graph), trained_(std::move(trained)), is_output_(graph.tensors().size(), false) {
    for (const TensorId id : graph.outputs)
      is_output_[id.index()] = true;
    for (const Operator& op : graph.operators()) {
      const bool any = std::ranges::any_of(
          op.inputs, [&](const auto& input) { return input && trained_[input->index()]; });
      for (const auto& output : op.outputs) {
        if (output && any)
          trained_[output->index()] = is_floating(graph.tensor(*output).type);
      }
    }
  }

  /// The chain around a softmax, if it is one.
  std::optional<Chain> match(OpId softmax) const {
    const Operator& op = graph_.op(softmax);
    if (!op.domain.empty() || !has_trait(op.op_type, OperatorRow::kProbabilities))
      return std::nullopt;
    const std::size_t rank = graph_.tensor(*op.inputs[0]).shape.size();
    if (rank < 2 || normal_axis(op.attributes.integer("axis", -1), rank) + 1 != rank)
      return std::nullopt;
    Chain chain;
    chain.replaced = {softmax};
    if (!match_scores(*op.inputs[0], chain) || !match_value(*op.outputs[0], chain))
      return std::nullopt;
    return fits(chain, rank) ? std::optional(chain) : std::nullopt;
  }

private:
  static bool is(const Operator& op, std::string_view type) {
    return op.domain.empty() && op.op_type == type;
  }
  /// Queries [.., D, K], keys [.., K, C] and values [.., C, K]. Keys and values may be those of a
  /// group of heads: 1 along batch axes of the queries.
  bool fits(const Chain& chain, std::size_t rank) const {
    const auto& q = graph_.tensor(chain.query).shape;
    const auto& k = graph_.tensor(chain.key_transposed).shape;
    const auto& v = graph_.tensor(chain.value).shape;
    if (q.size() != rank || k.size() != rank || v.size() != rank)
      return false;
    for (std::size_t i = 0; i + 2 < rank; ++i) {
      if (k[i] != v[i] || (k[i] != q[i] && k[i] != 1))
        return false;
    }
    return q.back() == k[rank - 2] && v.back() == q.back() && v[rank - 2] == k.back();
  }

  /// Whether only the next operator of the chain reads the tensor.
  bool is_inside(TensorId tensor) const {
    return graph_.tensor(tensor).consumers.size() == 1 && !is_output_[tensor.index()] &&
           graph_.tensor(tensor).producer.has_value();
  }

  /// Upwards from the softmax: masks, then scales, then the product.
  bool match_scores(TensorId scores, Chain& chain) const {
    for (std::size_t steps = 0; steps < 8 && is_inside(scores); ++steps) {
      const OpId id = *graph_.tensor(scores).producer;
      const Operator& op = graph_.op(id);
      if (is(op, ops::MatMul) && op.inputs.size() == 2) {
        chain.replaced.push_back(id);
        chain.query = *op.inputs[0];
        chain.key_transposed = *op.inputs[1];
        return true;
      }
      const auto before = match_where(op, chain);
      const auto found = before ? before : match_arithmetic(op, chain);
      if (!found)
        return false;
      chain.replaced.push_back(id);
      scores = *found;
    }
    return false;
  }

  /// Where(condition, scores, number) or Where(condition, number, scores).
  std::optional<TensorId> match_where(const Operator& op, Chain& chain) const {
    if (!is(op, ops::Where) || chain.where || chain.scale != 1.0)
      return std::nullopt;
    for (const std::size_t number : {std::size_t{2}, std::size_t{1}}) {
      const auto fill = known_number(graph_, op, number);
      const TensorId scores = *op.inputs[3 - number];
      if (!fill || graph_.tensor(scores).shape != graph_.tensor(*op.outputs[0]).shape)
        continue;
      chain.where = *op.inputs[0];
      chain.fill = *fill;
      chain.fill_where = number == 1;
      chain.fill_last = !chain.mask.has_value();
      return scores;
    }
    return std::nullopt;
  }

  /// Add of a mask that is not trained; Mul or Div by a number.
  std::optional<TensorId> match_arithmetic(const Operator& op, Chain& chain) const {
    const bool add = is(op, ops::Add);
    const bool divide = is(op, ops::Div);
    if (!add && !divide && !is(op, ops::Mul))
      return std::nullopt;
    for (const std::size_t other : {std::size_t{1}, std::size_t{0}}) {
      const TensorId side = *op.inputs[other];
      const TensorId scores = *op.inputs[1 - other];
      if (graph_.tensor(scores).shape != graph_.tensor(*op.outputs[0]).shape)
        continue;
      if (add) {
        if (chain.mask || chain.scale != 1.0 || trained_[side.index()] || !is_inside(scores))
          continue;
        chain.mask = side;
        return scores;
      }
      const auto number = known_number(graph_, op, other);
      if (!number || (divide && (other == 0 || *number == 0.0)))
        continue;
      chain.scale = divide ? chain.scale / *number : chain.scale * *number;
      return scores;
    }
    return std::nullopt;
  }

  bool match_value(TensorId weights, Chain& chain) const {
    for (std::size_t steps = 0; steps < 4 && is_inside(weights); ++steps) {
      const OpId id = graph_.tensor(weights).consumers[0];
      const Operator& op = graph_.op(id);
      chain.replaced.push_back(id);
      if (is(op, ops::MatMul) && op.inputs[0] == weights && op.inputs[1] != weights) {
        chain.value = *op.inputs[1];
        return true;
      }
      const bool passes =
          is(op, ops::Identity) || (is(op, ops::Dropout) && dropout_ratio(graph_, op) == 0.0);
      if (!passes || op.inputs[0] != weights)
        return false;
      weights = *op.outputs[0];
    }
    return false;
  }

  const Graph& graph_;
  std::vector<bool> trained_; ///< a trained parameter, or made of one
  std::vector<bool> is_output_;
};

/// K [.., C, K]: what was transposed for the product, or its transpose.
TensorId untransposed(GraphRewriter& made, const Chain& chain, const std::string& name) {
  const Graph& network = made.source();
  const Tensor& source = network.tensor(chain.key_transposed);
  const std::size_t rank = source.shape.size();
  Integers swap(rank);
  std::iota(swap.begin(), swap.end(), std::int64_t{0});
  std::swap(swap[rank - 2], swap[rank - 1]);
  if (source.producer) {
    const Operator& op = network.op(*source.producer);
    if (op.domain.empty() && op.op_type == ops::Transpose && op.attributes.integers("perm") == swap)
      return *op.inputs[0];
  }
  Integers shape = source.shape;
  std::swap(shape[rank - 2], shape[rank - 1]);
  const TensorId key =
      made.add_tensor({.name = name + ".key", .shape = std::move(shape), .type = source.type});
  made.graph().add_operator({.name = name + ".key_transpose",
                             .op_type = ops::Transpose,
                             .attributes = {{"perm", swap}},
                             .inputs = {chain.key_transposed},
                             .outputs = {key}});
  return key;
}

void add_attention(GraphRewriter& made, const Chain& chain) {
  const Operator& last = made.source().op(chain.replaced.back());
  Operator op{.name = last.name,
              .op_type = ops::Attention,
              .domain = std::string(kMonetDomain),
              .attributes = {{"scale", chain.scale}},
              .inputs = {chain.query, untransposed(made, chain, last.name), chain.value},
              .outputs = {last.outputs[0]},
              .phase = last.phase};
  if (chain.mask || chain.where)
    op.inputs.push_back(chain.mask);
  if (chain.where) {
    op.inputs.push_back(chain.where);
    op.attributes.set("fill", chain.fill);
    op.attributes.set("fill_where", std::int64_t{chain.fill_where ? 1 : 0});
    op.attributes.set("fill_last", std::int64_t{chain.fill_last ? 1 : 0});
  }
  build_nest(made.graph(), made.graph().add_operator(std::move(op))); // under its old name
}

} // namespace

Graph fuse_attention(const Graph& network, std::vector<bool> trained) {
  const Matcher matcher(network, std::move(trained));
  std::vector<std::optional<Chain>> at(network.operators().size()); ///< by their last operator
  std::vector<bool> replaced(network.operators().size(), false);
  for (std::size_t i = 0; i < network.operators().size(); ++i) {
    auto chain = matcher.match(OpId(i));
    if (!chain)
      continue;
    for (const OpId id : chain->replaced)
      replaced[id.index()] = true;
    at[chain->replaced.back().index()] = std::move(chain);
  }
  GraphRewriter made(network);
  for (std::size_t i = 0; i < network.operators().size(); ++i) {
    if (at[i])
      add_attention(made, *at[i]);
    if (!replaced[i])
      made.copy(OpId(i));
  }
  return made.release();
}

} // namespace monet

// Counts the floating-point operations of a rank's step, and finds causal masks and the products
// that they apply to. Used by blocks.cpp, kernels.cpp and layout.cpp.
#include "cluster/cost/costs.hpp"
#include "workload/shared/operators.hpp"

#include "monet/cluster/partition.hpp"

#include <algorithm>
#include <string_view>

namespace monet::cluster_cost {

namespace {

/// Maximum number of operators between a mask and either product of attention.
constexpr int kMaxBetween = 12;

/// Whether a tensor is a causal mask: a constant square matrix of booleans, shared by all samples
/// and heads. Known values must form a triangle; a larger mask, without known values, is assumed to
/// be causal.
bool is_causal_mask(const Tensor& tensor) {
  const std::vector<std::int64_t>& shape = tensor.shape;
  if (tensor.producer || tensor.type != ElementType::boolean || shape.size() < 2 ||
      shape[shape.size() - 1] != shape[shape.size() - 2] || shape.back() < 2 ||
      element_count(tensor) != shape.back() * shape.back())
    return false;
  const auto* values =
      tensor.values ? std::get_if<std::vector<std::int64_t>>(&*tensor.values) : nullptr;
  if (values == nullptr)
    return true;
  const auto above = [&](std::size_t i) {
    const auto size = static_cast<std::size_t>(shape.back());
    return i % size > i / size;
  };
  for (std::size_t i = 0; i < values->size(); ++i) {
    if (((*values)[i] != 0) != ((*values)[1] != 0 ? above(i) : !above(i)))
      return false;
  }
  return true;
}

bool is_ours(const Operator& op, std::string_view type) {
  return op.domain == kMonetDomain && op.op_type == type;
}

/// The operand that selects scores: the condition of a Where or of fused attention.
std::optional<TensorId> condition_of(const Operator& op) {
  const bool fused = is_ours(op, ops::Attention);
  const bool gradient = is_ours(op, ops::AttentionGrad);
  if (!fused && !gradient && !(op.domain.empty() && op.op_type == ops::Where))
    return std::nullopt;
  const std::size_t at = fused ? 4 : gradient ? 7 : 0;
  return op.inputs.size() > at ? op.inputs[at] : std::nullopt;
}

class CausalProducts {
public:
  CausalProducts(const Graph& graph, const std::set<TensorId>& masks)
      : graph_(graph), masks_(masks), found_(graph.operators().size(), false) {}

  std::vector<bool> run() {
    for (std::size_t i = 0; i < found_.size(); ++i) {
      const Operator& op = graph_.operators()[i];
      if (is_masked(graph_, op, masks_))
        mark(OpId(i));
      else if (op.forward_op && found_[op.forward_op->index()])
        found_[i] = op.nest.compute == ComputeKind::mac;
    }
    return std::move(found_);
  }

private:
  bool is_product(OpId id) const { return graph_.op(id).nest.compute == ComputeKind::mac; }

  void mark(OpId id) {
    if (is_product(id)) { // fused attention
      found_[id.index()] = true;
      return;
    }
    if (graph_.op(id).phase != Phase::forward)
      return;
    mark_first(id, [&](OpId at) { return scores_before(at); });
    mark_first(id, [&](OpId at) { return reader_of(at); });
  }

  /// Marks the next product along a path: the one that computes the scores, or the one that reads
  /// the probabilities.
  template <class Next>
  void mark_first(OpId id, const Next& next) {
    for (int steps = 0; steps < kMaxBetween; ++steps) {
      const std::optional<OpId> at = next(id);
      if (!at)
        return;
      id = *at;
      if (is_product(id)) {
        found_[id.index()] = true;
        return;
      }
    }
  }

  std::optional<OpId> scores_before(OpId id) const {
    const std::int64_t size = element_count(graph_.tensor(*graph_.op(id).outputs[0]));
    std::optional<OpId> before;
    for (const TensorId input : present(graph_.op(id).inputs)) {
      const Tensor& tensor = graph_.tensor(input);
      if (tensor.producer && element_count(tensor) == size)
        before = tensor.producer;
    }
    return before;
  }

  std::optional<OpId> reader_of(OpId id) const {
    std::optional<OpId> found;
    for (const OpId reader : graph_.tensor(*graph_.op(id).outputs[0]).consumers) {
      if (graph_.op(reader).phase == Phase::forward)
        found = reader;
    }
    return found;
  }

  const Graph& graph_;
  const std::set<TensorId>& masks_;
  std::vector<bool> found_;
};

} // namespace

bool is_masked(const Graph& graph, const Operator& op, const std::set<TensorId>& masks) {
  auto condition = condition_of(op);
  while (condition) {
    const auto producer = graph.tensor(*condition).producer;
    if (!producer || graph.op(*producer).op_type != ops::TakeShard)
      return masks.contains(*condition);
    condition = graph.op(*producer).inputs[0];
  }
  return false;
}

std::set<TensorId> causal_masks(const TrainingGraph& step, const RankStep& ranks) {
  std::set<TensorId> masks;
  for (const Operator& op : ranks.step.graph.operators()) {
    for (const TensorId id : present(op.inputs)) {
      const auto origin = ranks.origins.find(id);
      if (condition_of(op) && origin != ranks.origins.end() &&
          !ranks.step.graph.tensor(id).producer &&
          is_causal_mask(step.graph.tensor(origin->second.whole)))
        masks.insert(id);
    }
  }
  return masks;
}

namespace {

/// The share of an operator's multiplications that the model needs, for a transformer with experts.
/// Empty places in an expert's buffer and the products with one-hot tensors, which only move
/// tokens, are not needed. A gradient has the share of its forward product.
double share_of_experts(const Graph& graph, const Operator& op, const TransformerShape& shape) {
  const Operator& product = op.forward_op ? graph.op(*op.forward_op) : op;
  if (product.name.find(".moe.dispatched") != std::string::npos ||
      product.name.find(".moe.combined") != std::string::npos)
    return 0;
  const bool of_experts = product.name.find(".moe.") != std::string::npos &&
                          std::ranges::any_of(product.nest.operands, [&](const Access& access) {
                            const Tensor& tensor = graph.tensor(access.tensor);
                            return access.mode == AccessMode::read &&
                                   tensor.kind == TensorKind::parameter && tensor.shape.size() == 3;
                          });
  const auto places = static_cast<double>(*shape.experts * shape.capacity());
  const auto chosen = static_cast<double>(shape.topk * shape.sequence);
  return of_experts ? std::min(chosen / places, 1.0) : 1;
}

} // namespace

Operations operations_of(const Graph& graph, const std::set<TensorId>& masks, bool skips_masked,
                         const TransformerShape* shape) {
  const std::vector<bool> causal = CausalProducts(graph, masks).run();
  const bool mixes = shape != nullptr && shape->experts;
  Operations made;
  for (std::size_t i = 0; i < causal.size(); ++i) {
    const Operator& op = graph.operators()[i];
    const bool gradient = is_ours(op, ops::AttentionGrad);
    const bool skips = skips_masked && (gradient || is_ours(op, ops::Attention));
    const double all = 2 * static_cast<double>(macs(op.nest));
    // One of the five products of the gradient recomputes the scores.
    const double needed = (gradient ? all * 4 / 5 : all) *
                          (mixes && all > 0 ? share_of_experts(graph, op, *shape) : 1);
    const double share = causal[i] ? 0.5 : 1;
    made.model.push_back(op.phase == Phase::recompute ? 0 : needed * share);
    made.masked.push_back(op.phase == Phase::recompute ? 0 : needed * (1 - share));
    made.hardware.push_back(skips ? all * share : all);
  }
  return made;
}

} // namespace monet::cluster_cost

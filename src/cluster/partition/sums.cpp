// Classifies operators by their reductions over loops, and makes the divisors of mean losses
// explicit. Used by choose.cpp, axis_pass.cpp and partition.cpp.
#include "cluster/partition/sums.hpp"

#include "workload/shared/operators.hpp"

#include "monet/base/errors.hpp"
#include "monet/training_graph/training.hpp"

#include <algorithm>

namespace monet::mesh {

namespace {

bool is_ours(const Operator& op) {
  return op.domain == kMonetDomain;
}

/// Whether an operator is a product whose results are sums over its loops. Attention is excluded,
/// because it normalises in between.
bool is_sum_of_products(const Operator& op) {
  return op.nest.compute == ComputeKind::mac && op.op_type != ops::Attention &&
         op.op_type != ops::AttentionGrad;
}

} // namespace

OverLoop over_loop(const Operator& op, const Access& written, std::size_t loop) {
  if (has_local_statistics(op, loop)) {
    const bool gradient = written.role == "dscale" || written.role == "dbias";
    return gradient ? OverLoop::sum : OverLoop::local;
  }
  if (op.nest.dims[loop].coupled)
    return OverLoop::none;
  if (is_sum_of_products(op))
    return OverLoop::sum;
  const bool label_loss = has_trait(op.op_type, OperatorRow::kLabelLoss) &&
                          op.attributes.text("reduction", "mean") == "sum";
  const bool elementwise_loss =
      has_trait(op.op_type, OperatorRow::kElementwiseLoss) && op.attributes.has("divisor");
  if (label_loss || elementwise_loss || has_trait(op.op_type, OperatorRow::kSumsLoops))
    return OverLoop::sum;
  const bool amax = is_ours(op) && (op.op_type == ops::Amax ||
                                    (op.op_type == ops::ScaledCast && written.role == "amax"));
  const bool largest = op.op_type == ops::ReduceMax || op.op_type == ops::NonFinite || amax;
  return largest ? OverLoop::largest : OverLoop::none;
}

bool has_local_statistics(const Operator& op, std::size_t loop) {
  const bool normalises = op.op_type == ops::BatchNormalization || op.op_type == ops::BatchNormGrad;
  return normalises && loop == 0 && op.nest.dims[loop].coupled;
}

bool casts_weight(const Operator& op) {
  return has_trait(op.op_type, OperatorRow::kCasts);
}

bool is_sum_of_operands(const Operator& op) {
  const bool moves = is_ours(op) && op.op_type == ops::Copy;
  return moves || (op.domain.empty() && has_trait(op.op_type, OperatorRow::kLinearSum));
}

bool is_linear_exchange(const Operator& op) {
  const bool adds = (op.op_type == ops::AllReduce || op.op_type == ops::ReduceScatter) &&
                    op.attributes.text("reduce", "sum") == "sum";
  return is_ours(op) && (adds || op.op_type == ops::TakeShard);
}

namespace {

/// Rewrites a step with explicit divisors of mean losses.
class DivisorWriter {
public:
  explicit DivisorWriter(const TrainingGraph& step) : step_(step) {}

  TrainingGraph run() {
    begin();
    for (const Operator& op : step_.graph.operators())
      append(op);
    if (step_.store == StorePolicy::minimal)
      step_of_.stored_activations = tensors_read_by_backward(graph());
    step_of_.owner = find_owners(graph(), step_of_.stored_activations);
    return std::move(step_of_);
  }

private:
  Graph& graph() { return step_of_.graph; }

  void begin() {
    step_of_ = step_;
    step_of_.graph = Graph();
    graph().name = step_.graph.name;
    graph().origin = step_.graph.origin;
    graph().inputs = step_.graph.inputs;
    graph().outputs = step_.graph.outputs;
    for (Tensor tensor : step_.graph.tensors()) {
      tensor.producer.reset();
      tensor.consumers.clear();
      graph().add_tensor(std::move(tensor));
    }
  }

  void append(const Operator& op) {
    if (has_trait(op.op_type, OperatorRow::kElementwiseLoss))
      return append_elementwise(op);
    if (has_trait(op.op_type, OperatorRow::kLabelLoss) &&
        op.attributes.text("reduction", "mean") == "mean")
      return append_mean(op);
    const bool labels = op.op_type == ops::SoftmaxCrossEntropyGrad;
    if (labels || op.op_type == ops::NegativeLogLikelihoodLossGrad)
      return append_gradient(op, labels ? 2 : 3);
    places_.push_back(add(op));
  }

  /// Adds an operator and renumbers its reference to a forward operator, because inserted divisions
  /// shift the numbers.
  OpId add(Operator op) {
    if (op.forward_op)
      op.forward_op = places_.at(op.forward_op->index());
    const OpId id = graph().add_operator(std::move(op));
    return id;
  }

  void append_elementwise(const Operator& op) {
    Operator made = op;
    if (!made.attributes.has("divisor"))
      made.attributes.set("divisor", iterations(op.nest));
    places_.push_back(add(std::move(made)));
  }

  TensorId add_scalar(const std::string& name, const Tensor& like) {
    Tensor tensor{.name = name, .type = like.type, .kind = TensorKind::activation};
    return graph().add_tensor(std::move(tensor));
  }

  void append_mean(const Operator& op) {
    Operator made = op;
    const TensorId loss = *op.outputs[0];
    const Tensor like = graph().tensor(loss);
    const TensorId sum = add_scalar(like.name + ".summed", like);
    made.attributes.set("reduction", std::string("sum"));
    made.outputs[0] = sum;
    if (made.outputs.size() < 2)
      made.outputs.push_back(add_scalar(like.name + ".counted", like));
    const TensorId counted = *made.outputs[1];
    counts_.emplace_back(*op.inputs[1], counted);
    const OpId id = add(std::move(made));
    build_nest_through_views(id, op);
    places_.push_back(id);
    Operator division{.name = op.name + ".Div",
                      .op_type = ops::Div,
                      .inputs = {sum, counted},
                      .outputs = {loss},
                      .phase = op.phase};
    build_nest(graph(), graph().add_operator(std::move(division)));
  }

  /// Sets the nest of a summed loss: that of the mean, with the sum as the result and with the
  /// count.
  void build_nest_through_views(OpId id, const Operator& before) {
    Operator& op = graph().op(id);
    LoopNest nest = before.nest;
    nest.operands.front().tensor = *op.outputs[0];
    if (before.outputs.size() < 2)
      nest.operands.insert(nest.operands.begin() + 1,
                           Access{*op.outputs[1], AccessMode::write, "counted", {}});
    op.nest = std::move(nest);
  }

  void append_gradient(const Operator& op, std::size_t input) {
    Operator made = op;
    const auto count = std::ranges::find_if(
        counts_, [&](const auto& entry) { return entry.first == *op.inputs[1]; });
    const bool has = op.inputs.size() > input && op.inputs[input];
    if (op.attributes.text("reduction", "mean") == "mean" && !has && count != counts_.end()) {
      if (made.inputs.size() <= input)
        made.inputs.resize(input + 1);
      made.inputs[input] = count->second;
      made.nest.operands.push_back(Access{count->second, AccessMode::read, "counted", {}});
    }
    places_.push_back(add(std::move(made)));
  }

  const TrainingGraph& step_;
  TrainingGraph step_of_;
  std::vector<OpId> places_;                          ///< by operator of the step
  std::vector<std::pair<TensorId, TensorId>> counts_; ///< labels and their count
};

} // namespace

TrainingGraph with_divisors(const TrainingGraph& step) {
  return DivisorWriter(step).run();
}

} // namespace monet::mesh

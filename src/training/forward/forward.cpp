#include "training/forward/forward.hpp"

#include "training/build/precision.hpp"

#include "monet/base/errors.hpp"
#include "monet/workload/operators.hpp"

#include <fmt/core.h>

#include <algorithm>

namespace monet {

ElementType type_for_role(const Tensor& tensor, const Precision& precision, bool trained) {
  if (!is_floating(tensor.type))
    return tensor.type;
  switch (tensor.kind) {
  case TensorKind::parameter:
    return weight_type(precision, trained);
  case TensorKind::input:
  case TensorKind::constant:
  case TensorKind::activation:
    return precision.activations;
  case TensorKind::gradient:
  case TensorKind::parameter_gradient:
    return precision.gradients;
  case TensorKind::optimizer_state:
    return precision.optimizer_state;
  case TensorKind::label:
  case TensorKind::buffer:
    return tensor.type;
  }
  throw InternalError("tensor kind without a role");
}

namespace {

struct ExtraTensor {
  std::size_t index = 0;
  Tensor tensor;
};

/// An operator of the network as the step has it; tensors are still the network's.
struct Adapted {
  Operator op;
  std::vector<ExtraTensor> extra;     ///< new outputs
  std::vector<ExtraTensor> constants; ///< new inputs
  bool changed = false;
  /// Outputs that overwrite an input in place: (output, input).
  std::vector<std::pair<std::size_t, std::size_t>> in_place;
};

Tensor extra_tensor(const Graph& network, const Operator& op, std::string_view suffix,
                    std::vector<std::int64_t> shape, ElementType type) {
  Tensor tensor;
  tensor.name = fmt::format("{}.{}", network.tensor(*op.outputs[0]).name, suffix);
  tensor.shape = std::move(shape);
  tensor.type = type;
  return tensor;
}

bool has_output(const Operator& op, std::size_t i) {
  return i < op.outputs.size() && op.outputs[i];
}

/// Outputs: Y, running mean, running variance, then what backward reads: batch mean and inverse
/// standard deviation. ONNX has no place for the last two, so such an operator is in our domain.
void adapt_batch_norm(const Graph& network, const Precision& precision, bool differentiated,
                      Adapted& adapted) {
  Operator& op = adapted.op;
  const std::vector<std::int64_t> channels = network.tensor(*op.inputs[1]).shape;
  op.attributes.set("training_mode", std::int64_t{1});
  op.domain = kMonetDomain; // its running variance follows the unbiased estimate, unlike ONNX's
  op.outputs.resize(differentiated ? 5 : 3);
  adapted.changed = true;
  adapted.in_place = {{1, 3}, {2, 4}};
  constexpr std::string_view kRunning[]{"running_mean", "running_var"};
  for (std::size_t i = 1; i <= 2; ++i) {
    if (op.outputs[i])
      continue;
    const ElementType type = network.tensor(*op.inputs[i + 2]).type;
    adapted.extra.push_back({i, extra_tensor(network, op, kRunning[i - 1], channels, type)});
  }
  if (!differentiated)
    return;
  adapted.extra.push_back(
      {3, extra_tensor(network, op, "batch_mean", channels, precision.reduction_type())});
  adapted.extra.push_back(
      {4, extra_tensor(network, op, "batch_inv_std", channels, precision.reduction_type())});
}

void adapt_layer_norm(const Graph& network, const Precision& precision, Adapted& adapted) {
  Operator& op = adapted.op;
  std::vector<std::int64_t> shape = network.tensor(*op.inputs[0]).shape;
  const std::size_t axis = normal_axis(op.attributes.integer("axis", -1), shape.size());
  for (std::size_t i = axis; i < shape.size(); ++i)
    shape[i] = 1;
  op.outputs.resize(3);
  adapted.changed = true;
  if (!op.outputs[1])
    adapted.extra.push_back(
        {1, extra_tensor(network, op, "mean", shape, precision.reduction_type())});
  if (!op.outputs[2])
    adapted.extra.push_back(
        {2, extra_tensor(network, op, "inv_std", shape, precision.reduction_type())});
}

/// Mean and inverse standard deviation of every group of every sample.
void adapt_group_norm(const Graph& network, const Precision& precision, Adapted& adapted) {
  Operator& op = adapted.op;
  const std::vector<std::int64_t> shape = network.tensor(*op.inputs[0]).shape;
  const std::vector<std::int64_t> groups{shape[0], op.attributes.integer("num_groups", shape[1])};
  op.outputs.resize(3);
  adapted.changed = true;
  adapted.extra.push_back(
      {1, extra_tensor(network, op, "mean", groups, precision.reduction_type())});
  adapted.extra.push_back(
      {2, extra_tensor(network, op, "inv_std", groups, precision.reduction_type())});
}

void adapt_rms_norm(const Graph& network, const Precision& precision, Adapted& adapted) {
  Operator& op = adapted.op;
  std::vector<std::int64_t> shape = network.tensor(*op.inputs[0]).shape;
  const std::size_t axis = normal_axis(op.attributes.integer("axis", -1), shape.size());
  std::fill(shape.begin() + static_cast<std::ptrdiff_t>(axis), shape.end(), std::int64_t{1});
  op.outputs.resize(2);
  adapted.changed = true;
  adapted.extra.push_back(
      {1, extra_tensor(network, op, "inv_rms", shape, precision.reduction_type())});
}

/// With ratio 0 nothing is dropped and no mask is kept.
void adapt_dropout(const Graph& network, bool training, bool differentiated, Adapted& adapted) {
  Operator& op = adapted.op;
  const double ratio = dropout_ratio(network, op);
  adapted.changed = true;
  if (!training || ratio == 0.0) {
    op.op_type = "Identity";
    op.domain = "";
    op.inputs.resize(1);
    op.outputs.resize(1);
    op.attributes = {};
    return;
  }
  op.inputs.resize(3); // ratio and training_mode, which is false when left out
  Tensor on = extra_tensor(network, op, "training_mode", {}, ElementType::boolean);
  on.kind = TensorKind::constant;
  on.values = std::vector<std::int64_t>{1};
  adapted.constants.push_back({2, std::move(on)});
  op.inputs[2].reset();
  if (has_output(op, 1) || !differentiated)
    return;
  op.outputs.resize(2);
  const std::vector<std::int64_t> shape = network.tensor(*op.outputs[0]).shape;
  adapted.extra.push_back({1, extra_tensor(network, op, "mask", shape, ElementType::boolean)});
}

/// The extra output is the winner's place in its window, which any view of the input leaves alone;
/// ONNX's index counts through the whole tensor. Global pooling is a window over everything.
void adapt_max_pool(const Graph& network, Adapted& adapted) {
  Operator& op = adapted.op;
  if (has_output(op, 1))
    return;
  if (op.op_type == "GlobalMaxPool") {
    const std::vector<std::int64_t>& input = network.tensor(*op.inputs[0]).shape;
    op.op_type = "MaxPool";
    op.attributes.set("kernel_shape", std::vector<std::int64_t>(input.begin() + 2, input.end()));
  }
  op.domain = kMonetDomain;
  op.attributes.set("window_indices", std::int64_t{1});
  op.outputs.resize(2);
  adapted.changed = true;
  const std::vector<std::int64_t> shape = network.tensor(*op.outputs[0]).shape;
  adapted.extra.push_back({1, extra_tensor(network, op, "indices", shape, ElementType::int64)});
}

/// Backward recomputes the scores from the logarithm of each row's sum of exponentials.
void adapt_attention(const Graph& network, const Precision& precision, Adapted& adapted) {
  Operator& op = adapted.op;
  if (has_output(op, 1))
    return;
  op.outputs.resize(2);
  adapted.changed = true;
  std::vector<std::int64_t> rows = network.tensor(*op.inputs[0]).shape;
  rows.pop_back();
  adapted.extra.push_back(
      {1, extra_tensor(network, op, "log_sum_exp", rows, precision.reduction_type())});
}

Adapted adapt(const Graph& network, const Operator& op, const Precision& precision,
              const GradientNeeds* needs, bool frozen_batch_norm) {
  Adapted adapted{op, {}, {}, false, {}};
  const bool training = needs != nullptr;
  if (training) { // whatever the file says, the step to be made begins here
    adapted.op.phase = Phase::forward;
    adapted.op.gradient_of = GradientOf::none;
    adapted.op.forward_op.reset();
  }
  const bool differentiated = training && is_differentiated(*needs, op);
  if (op.op_type == "BatchNormalization") {
    if (training && !frozen_batch_norm) {
      adapt_batch_norm(network, precision, differentiated, adapted);
    } else {
      adapted.changed = true;
      adapted.op.attributes.set("training_mode", std::int64_t{0});
      adapted.op.outputs.resize(1);
    }
  } else if (op.op_type == "LayerNormalization") {
    if (differentiated)
      adapt_layer_norm(network, precision, adapted);
  } else if (op.op_type == "GroupNormalization" || op.op_type == "InstanceNormalization") {
    if (differentiated)
      adapt_group_norm(network, precision, adapted);
  } else if (op.op_type == "RMSNormalization") {
    if (differentiated)
      adapt_rms_norm(network, precision, adapted);
  } else if (op.op_type == "Dropout") {
    adapt_dropout(network, training, differentiated, adapted);
  } else if (op.op_type == "MaxPool" || op.op_type == "GlobalMaxPool") {
    if (differentiated)
      adapt_max_pool(network, adapted);
  } else if (op.op_type == "Attention" && op.domain == kMonetDomain) {
    if (differentiated)
      adapt_attention(network, precision, adapted);
  }
  return adapted;
}

std::vector<bool> used_tensors(const Graph& network, const std::vector<Adapted>& operators) {
  std::vector<bool> used(network.tensors().size(), false);
  for (const TensorId id : network.inputs)
    used[id.index()] = true;
  for (const TensorId id : network.outputs)
    used[id.index()] = true;
  for (std::size_t i = 0; i < used.size(); ++i) {
    const TensorKind kind = network.tensors()[i].kind;
    if (kind == TensorKind::parameter || kind == TensorKind::buffer)
      used[i] = true;
  }
  for (const Adapted& adapted : operators) {
    for (const auto& id : adapted.op.inputs) {
      if (id)
        used[id->index()] = true;
    }
    for (const auto& id : adapted.op.outputs) {
      if (id)
        used[id->index()] = true;
    }
  }
  return used;
}

void add_adapted(Adapted adapted, PreparedForward& made) {
  Operator& op = adapted.op;
  const auto map = [&](std::optional<TensorId>& id) {
    if (id)
      id = made.to_step[id->index()];
  };
  for (auto& id : op.inputs)
    map(id);
  for (auto& id : op.outputs)
    map(id);
  for (ExtraTensor& constant : adapted.constants)
    op.inputs[constant.index] = made.graph.add_tensor(std::move(constant.tensor));
  for (ExtraTensor& extra : adapted.extra)
    op.outputs[extra.index] = made.graph.add_tensor(std::move(extra.tensor));
  for (const auto& [output, input] : adapted.in_place) {
    Tensor& tensor = made.graph.tensor(*op.outputs[output]);
    tensor.alias_of = op.inputs[input];
    tensor.kind = TensorKind::buffer;
    tensor.type = made.graph.tensor(*op.inputs[input]).type;
  }
  for (Access& access : op.nest.operands) {
    if (const auto id = made.to_step[access.tensor.index()])
      access.tensor = *id;
  }
  if (adapted.changed)
    op.nest = {};
  const OpId id = made.graph.add_operator(std::move(op));
  if (!adapted.changed)
    return;
  const Operator& added = made.graph.op(id);
  const OperatorRule* rule = find_rule(added.domain, added.op_type);
  internal_check(rule != nullptr,
                 fmt::format("no loop nest for '{}' of domain '{}'", added.op_type, added.domain));
  if (!rule->is_view)
    build_nest(made.graph, id);
}

} // namespace

PreparedForward prepare_forward(const Graph& network, const Precision& precision,
                                const GradientNeeds* needs, bool frozen_batch_norm) {
  std::vector<Adapted> operators;
  operators.reserve(network.operators().size());
  for (const Operator& op : network.operators())
    operators.push_back(adapt(network, op, precision, needs, frozen_batch_norm));
  const std::vector<bool> used = used_tensors(network, operators);

  PreparedForward made;
  made.graph.name = network.name;
  made.graph.origin = network.origin;
  made.to_step.resize(network.tensors().size());
  for (std::size_t i = 0; i < used.size(); ++i) {
    if (!used[i])
      continue;
    Tensor tensor = network.tensors()[i];
    tensor.type = type_for_role(tensor, precision, needs == nullptr || needs->depends[i]);
    tensor.producer.reset();
    tensor.consumers.clear();
    made.to_step[i] = made.graph.add_tensor(std::move(tensor));
  }
  for (std::size_t i = 0; i < used.size(); ++i) {
    const auto alias = network.tensors()[i].alias_of;
    if (used[i] && alias)
      made.graph.tensor(*made.to_step[i]).alias_of = made.to_step[alias->index()];
  }
  for (Adapted& adapted : operators)
    add_adapted(std::move(adapted), made);
  for (const TensorId id : network.inputs)
    made.graph.inputs.push_back(*made.to_step[id.index()]);
  for (const TensorId id : network.outputs)
    made.graph.outputs.push_back(*made.to_step[id.index()]);
  return made;
}

} // namespace monet

// Prepares the operators of a network for a step: types by role, statistics, extra outputs.
#include "training_graph/forward/forward.hpp"

#include "training_graph/build/scaled_casts.hpp"
#include "workload/shared/operators.hpp"

#include "monet/base/errors.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <map>

namespace monet {

ElementType type_for_role(const Tensor& tensor, const Precision& precision, bool trained) {
  if (!is_floating(tensor.type))
    return tensor.type;
  const ElementType own = tensor.type;
  switch (tensor.kind) {
  case TensorKind::parameter:
    return weight_type(precision, trained).value_or(own);
  case TensorKind::input:
  case TensorKind::constant:
  case TensorKind::activation:
    return precision.activations.value_or(own);
  case TensorKind::gradient:
  case TensorKind::parameter_gradient:
    return precision.gradient_type(own);
  case TensorKind::optimizer_state:
    return precision.state_type(own);
  case TensorKind::label:
  case TensorKind::buffer:
    return own;
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

class Adapter {
public:
  Adapter(const Graph& network, const Operator& op, const Precision& precision,
          const GradientNeeds* needs)
      : network_(network), precision_(precision), reduction_type_(precision.reduction_type()),
        training_(needs != nullptr), differentiated_(training_ && is_differentiated(*needs, op)),
        adapted_{op, {}, {}, false, {}}, op_(adapted_.op) {
    if (!training_)
      return;
    op_.phase = Phase::forward; // for any phase in the file: the step begins here
    op_.gradient_of = GradientOf::none;
    op_.forward_op.reset();
  }

  Adapted adapt(bool frozen_batch_norm) {
    if (op_.op_type == ops::BatchNormalization)
      batch_norm(frozen_batch_norm);
    else if (op_.op_type == ops::Dropout)
      dropout();
    else if (differentiated_)
      adapt_differentiated();
    return std::move(adapted_);
  }

private:
  const Integers& input_shape(std::size_t i) const { return network_.tensor(*op_.inputs[i]).shape; }
  bool has_output(std::size_t i) const { return i < op_.outputs.size() && op_.outputs[i]; }

  Tensor extra_tensor(std::string_view suffix, Integers shape, ElementType type) const {
    return {.name = fmt::format("{}.{}", network_.tensor(*op_.outputs[0]).name, suffix),
            .shape = std::move(shape),
            .type = type};
  }
  void add_output(std::size_t i, std::string_view suffix, Integers shape, ElementType type) {
    if (op_.outputs.size() <= i)
      op_.outputs.resize(i + 1);
    adapted_.changed = true;
    adapted_.extra.push_back({i, extra_tensor(suffix, std::move(shape), type)});
  }
  /// In the type of sums, or of what is summed where that is wider.
  void add_statistic(std::size_t i, std::string_view suffix, Integers shape) {
    const ElementType type = type_for_role(network_.tensor(*op_.inputs[0]), precision_);
    const bool wide = is_floating(type) && bits_of(type) > bits_of(reduction_type_);
    add_output(i, suffix, std::move(shape), wide ? type : reduction_type_);
  }

  void adapt_differentiated() {
    if (op_.op_type == ops::LayerNormalization)
      layer_norm();
    else if (op_.op_type == ops::GroupNormalization || op_.op_type == ops::InstanceNormalization)
      group_norm();
    else if (op_.op_type == ops::RMSNormalization)
      add_statistic(1, "inv_rms", normalised_shape());
    else if ((op_.op_type == ops::MaxPool || op_.op_type == ops::GlobalMaxPool) && !has_output(1))
      max_pool();
    else if (op_.op_type == ops::NegativeLogLikelihoodLoss && !has_output(1))
      log_likelihood();
    else if (op_.op_type == ops::FakeQuantize && !has_output(1))
      add_output(1, "mask", input_shape(0), ElementType::boolean);
    else if (op_.op_type == ops::Attention && op_.domain == kMonetDomain && !has_output(1))
      attention();
  }

  /// Outputs: Y, running mean, running variance, then what backward reads: batch mean and inverse
  /// standard deviation. ONNX has no place for the last two, so such an operator is in our domain.
  void batch_norm(bool frozen) {
    const bool estimates = training_ && !frozen;
    adapted_.changed = true;
    op_.attributes.set("training_mode", std::int64_t{estimates});
    op_.outputs.resize(estimates ? 3 : 1);
    if (!estimates)
      return;
    op_.domain = kMonetDomain; // its running variance follows the unbiased estimate, unlike ONNX's
    const Integers& channels = input_shape(1);
    constexpr std::string_view kRunning[]{"running_mean", "running_var"};
    if (network_.tensor(*op_.inputs[3]).producer || network_.tensor(*op_.inputs[4]).producer) {
      op_.inputs.resize(3); // the file computes those of the batch: there are no running ones
      op_.outputs = {op_.outputs[0], std::nullopt, std::nullopt};
    } else {
      adapted_.in_place = {{1, 3}, {2, 4}};
    }
    for (std::size_t i = 1; i <= 2 && !adapted_.in_place.empty(); ++i) {
      if (!op_.outputs[i])
        add_output(i, kRunning[i - 1], channels, network_.tensor(*op_.inputs[i + 2]).type);
    }
    if (!differentiated_)
      return;
    add_statistic(3, "batch_mean", channels);
    add_statistic(4, "batch_inv_std", channels);
  }

  /// The first input's shape with 1 on the axes that are normalised over.
  Integers normalised_shape() const {
    Integers shape = input_shape(0);
    const std::size_t axis = normal_axis(op_.attributes.integer("axis", -1), shape.size());
    std::fill(shape.begin() + static_cast<std::ptrdiff_t>(axis), shape.end(), std::int64_t{1});
    return shape;
  }

  void layer_norm() {
    op_.outputs.resize(3);
    adapted_.changed = true;
    if (!op_.outputs[1])
      add_statistic(1, "mean", normalised_shape());
    if (!op_.outputs[2])
      add_statistic(2, "inv_std", normalised_shape());
  }

  /// Mean and inverse standard deviation of every group of every sample.
  void group_norm() {
    const Integers& shape = input_shape(0);
    const Integers groups{shape[0], op_.attributes.integer("num_groups", shape[1])};
    add_statistic(1, "mean", groups);
    add_statistic(2, "inv_std", groups);
  }

  /// With ratio 0 nothing is dropped and no mask is kept.
  void dropout() {
    const double ratio = dropout_ratio(network_, op_);
    adapted_.changed = true;
    if (!training_ || ratio == 0.0) {
      op_.op_type = ops::Identity;
      op_.domain = "";
      op_.inputs.resize(1);
      op_.outputs.resize(1);
      op_.attributes = {};
      return;
    }
    op_.inputs.resize(3); // ratio and training_mode, which is false when left out
    Tensor on = extra_tensor("training_mode", {}, ElementType::boolean);
    on.kind = TensorKind::constant;
    on.values = Integers{1};
    adapted_.constants.push_back({2, std::move(on)});
    op_.inputs[2].reset();
    if (!has_output(1) && differentiated_)
      add_output(1, "mask", network_.tensor(*op_.outputs[0]).shape, ElementType::boolean);
  }

  /// The extra output is the winner's place in its window, which any view of the input leaves
  /// alone; ONNX's index counts through the whole tensor. Global pooling is a window over
  /// everything.
  void max_pool() {
    if (op_.op_type == ops::GlobalMaxPool) {
      const Integers& input = input_shape(0);
      op_.op_type = ops::MaxPool;
      op_.attributes.set("kernel_shape", Integers(input.begin() + 2, input.end()));
    }
    op_.domain = kMonetDomain;
    op_.attributes.set("window_indices", std::int64_t{1});
    add_output(1, "indices", network_.tensor(*op_.outputs[0]).shape, ElementType::int64);
  }

  /// Adds an output for the divisor of a mean if labels may be ignored or weigh differently.
  void log_likelihood() {
    const bool mean = op_.attributes.text("reduction", "mean") == "mean";
    const bool weighted = op_.inputs.size() > 2 && op_.inputs[2];
    if (mean && (weighted || op_.attributes.has("ignore_index")))
      add_statistic(1, "counted", {});
  }

  /// Adds an output for the logarithm of each row's sum of exponentials, from which backward
  /// recomputes the scores.
  void attention() {
    Integers rows = input_shape(0);
    rows.pop_back();
    add_statistic(1, "log_sum_exp", rows);
  }

  const Graph& network_;
  const Precision& precision_;
  ElementType reduction_type_;
  bool training_;
  bool differentiated_;
  Adapted adapted_;
  Operator& op_; ///< of `adapted_`
};

/// Leaves out what computes nothing that is read, as statistics that a layer no longer asks for.
std::vector<Adapted> without_unread(const Graph& network, std::vector<Adapted> operators) {
  std::vector<bool> read(network.tensors().size(), false);
  for (const TensorId id : network.outputs)
    read[id.index()] = true;
  std::vector<Adapted> kept;
  for (std::size_t i = operators.size(); i-- > 0;) {
    Adapted& adapted = operators[i];
    // Statistics follow from what is normalised: where that is not read, they stay as they are.
    const bool statistics = !adapted.in_place.empty();
    const auto wanted = [&](std::optional<TensorId> id) {
      return id && (read[id->index()] || (!statistics && network.tensor(*id).alias_of));
    };
    const auto& outputs = adapted.op.outputs;
    if (std::none_of(outputs.begin(),
                     outputs.begin() + (statistics ? 1 : outputs.end() - outputs.begin()), wanted))
      continue;
    for (const TensorId id : present(adapted.op.inputs))
      read[id.index()] = true;
    kept.push_back(std::move(adapted));
  }
  std::reverse(kept.begin(), kept.end());
  return kept;
}

/// Tensors of casts to fp8: results, maxima and scales are what they are.
bool has_own_type(const Graph& network, const Tensor& tensor) {
  const auto casts = [&](OpId id) { return casts_scaled(network.op(id)); };
  return (tensor.producer && casts(*tensor.producer)) ||
         (tensor.kind == TensorKind::optimizer_state &&
          std::ranges::any_of(tensor.consumers, casts));
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
    for (const TensorId id : present(adapted.op.inputs))
      used[id.index()] = true;
    for (const TensorId id : present(adapted.op.outputs))
      used[id.index()] = true;
  }
  return used;
}

/// Last version of every tensor that is overwritten in place.
using LastVersions = std::map<TensorId, TensorId>;

/// A layer that is called several times updates its statistics as often: each call begins with what
/// the one before it left.
void follow_statistics(Adapted& adapted, LastVersions& last) {
  Operator& op = adapted.op;
  for (const auto& [output, input] : adapted.in_place) {
    const auto version = last.find(*op.inputs[input]);
    if (version != last.end())
      op.inputs[input] = version->second;
  }
}

void add_adapted(Adapted adapted, PreparedForward& made, LastVersions& last) {
  Operator& op = adapted.op;
  const auto map = [&](std::optional<TensorId>& id) {
    if (id)
      id = made.to_step[id->index()];
  };
  for (auto& id : op.inputs)
    map(id);
  std::vector<TensorId> overwritten; // the buffers themselves
  for (const auto& [output, input] : adapted.in_place)
    overwritten.push_back(*op.inputs[input]);
  follow_statistics(adapted, last);
  for (auto& id : op.outputs)
    map(id);
  for (ExtraTensor& constant : adapted.constants)
    op.inputs[constant.index] = made.graph.add_tensor(std::move(constant.tensor));
  for (ExtraTensor& extra : adapted.extra)
    op.outputs[extra.index] = made.graph.add_tensor(std::move(extra.tensor));
  for (std::size_t i = 0; i < overwritten.size(); ++i) {
    const TensorId output = *op.outputs[adapted.in_place[i].first];
    Tensor& tensor = made.graph.tensor(output);
    tensor.alias_of = overwritten[i];
    tensor.kind = TensorKind::buffer;
    tensor.type = made.graph.tensor(overwritten[i]).type;
    last.insert_or_assign(overwritten[i], output);
  }
  for (Access& access : op.nest.operands) {
    if (const auto id = made.to_step[access.tensor.index()])
      access.tensor = *id;
  }
  if (adapted.changed)
    op.nest = {};
  const OpId id = made.graph.add_operator(std::move(op));
  if (adapted.changed)
    build_nest(made.graph, id);
}

} // namespace

PreparedForward prepare_forward(const Graph& network, const Precision& precision,
                                const GradientNeeds* needs, bool frozen_batch_norm) {
  // A training step that is run unchanged normalises by its batch and applies dropout as its
  // operators specify.
  const bool is_step = needs == nullptr && std::ranges::any_of(network.operators(), [](auto& op) {
                         return op.phase == Phase::backward || op.phase == Phase::update;
                       });
  std::vector<Adapted> operators;
  operators.reserve(network.operators().size());
  for (const Operator& op : network.operators()) {
    operators.push_back(is_step ? Adapted{op, {}, {}, false, {}}
                                : Adapter(network, op, precision, needs).adapt(frozen_batch_norm));
  }
  if (needs != nullptr)
    operators = without_unread(network, std::move(operators));
  const std::vector<bool> used = used_tensors(network, operators);

  PreparedForward made;
  made.graph.name = network.name;
  made.graph.origin = network.origin;
  made.graph.buffers = network.buffers;
  made.to_step.resize(network.tensors().size());
  for (std::size_t i = 0; i < used.size(); ++i) {
    if (!used[i])
      continue;
    Tensor tensor = network.tensors()[i];
    if (!has_own_type(network, network.tensors()[i]))
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
  LastVersions last;
  for (Adapted& adapted : operators)
    add_adapted(std::move(adapted), made, last);
  for (const TensorId id : network.inputs)
    made.graph.inputs.push_back(*made.to_step[id.index()]);
  for (const TensorId id : network.outputs)
    made.graph.outputs.push_back(*made.to_step[id.index()]);
  return made;
}

} // namespace monet

// Selects the trained parameters and their layers from the options, before differentiation.
#include "training_graph/build/rebuild.hpp"
#include "training_graph/forward/forward.hpp"
#include "workload/shared/op_types.hpp"
#include "workload/shared/views.hpp"

#include "monet/base/warnings.hpp"

#include <fmt/core.h>

#include <algorithm>

namespace monet {

namespace {

bool is_weight(const Tensor& tensor) {
  return tensor.kind == TensorKind::parameter && is_floating(tensor.type);
}

/// The parameter that a tensor is a view of, rounded or cast or as it is.
TensorId weight_behind(const Graph& network, TensorId tensor) {
  TensorId root = storage_root(network, tensor);
  while (const auto producer = network.tensor(root).producer) {
    const Operator& op = network.op(*producer);
    if ((op.op_type != ops::Cast && op.op_type != ops::FakeQuantize) || !op.inputs[0])
      break;
    root = storage_root(network, *op.inputs[0]);
  }
  return root;
}

/// An operator whose weight makes a layer: a product with a parameter, or rows picked from one.
std::optional<TensorId> layer_weight(const Graph& network, const Operator& op) {
  if (op.nest.compute != ComputeKind::mac && op.op_type != ops::Gather)
    return std::nullopt;
  for (std::size_t i = 0; i < std::min<std::size_t>(2, op.inputs.size()); ++i) {
    if (!op.inputs[i])
      continue;
    const TensorId root = weight_behind(network, *op.inputs[i]);
    if (is_weight(network.tensor(root)))
      return root;
  }
  return std::nullopt;
}

SourceLoc tensor_in(const Graph& network, std::string_view name) {
  return {network.origin, 0, 0, fmt::format("tensor '{}'", name)};
}

/// Warns of tensors whose kind is a guess: a buffer may be a parameter, and the reverse.
void warn_of_guesses(const Graph& network) {
  for (const FoundBuffer& buffer : network.buffers) {
    if (!buffer.is_guess)
      continue;
    warn(tensor_in(network, buffer.name),
         fmt::format("{} numbers are treated as a buffer and not trained, because of {}",
                     buffer.elements, buffer.why),
         fmt::format("to train them set `trainable: {{parameters: ['{}']}}`", buffer.name));
  }
  for (const FoundBuffer& parameter : network.doubtful) {
    warn(
        tensor_in(network, parameter.name),
        fmt::format(
            "{} numbers are treated as a parameter and trained, but may be a buffer, because of {}",
            parameter.elements, parameter.why),
        fmt::format("to keep them set `trainable: {{buffers: ['{}']}}`", parameter.name));
  }
}

std::string relation_text(const EqualWeights& pair) {
  return fmt::format("'{}' is {}'{}'", pair.name, pair.is_transposed ? "the transpose of " : "",
                     pair.of);
}

/// Weights that are equal to the last bit are mostly one parameter, or copies of a layer that has
/// not been trained.
void warn_of_equal_weights(const Graph& network) {
  constexpr std::size_t kNamed = 3;
  const auto is_parameter = [&](const std::string& name) {
    const auto id = network.find_tensor(name);
    return id && is_weight(network.tensor(*id));
  };
  std::vector<const EqualWeights*> unshared;
  for (const EqualWeights& pair : network.equal_weights) {
    if (!is_parameter(pair.of))
      continue;
    if (!pair.is_tied && is_parameter(pair.name))
      unshared.push_back(&pair);
    if (pair.is_tied)
      warn(tensor_in(network, pair.name),
           relation_text(pair) + ", bit for bit: both are trained as one parameter",
           "to train them separately set `trainable: {ties: none}`");
  }
  if (unshared.empty())
    return;
  std::string text;
  for (std::size_t i = 0; i < std::min(unshared.size(), kNamed); ++i)
    text += (i == 0 ? "" : ", ") + relation_text(*unshared[i]);
  if (unshared.size() > kNamed)
    text += fmt::format(" and {} more", unshared.size() - kNamed);
  warn({network.origin, 0, 0, ""}, text + ", bit for bit: they are trained separately",
       fmt::format("to train them as one parameter set `trainable: {{ties: ['{}']}}`",
                   unshared.front()->name));
}

void keep_layers(const Graph& network, const LayerRange& range, std::vector<bool>& trained) {
  const auto layers = layers_of(network);
  std::int64_t count = 0;
  for (const auto& layer : layers)
    count = std::max(count, layer ? *layer + 1 : 0);
  const auto normal = [&](std::int64_t layer) { return layer < 0 ? layer + count : layer; };
  const std::int64_t from = normal(range.from);
  const std::int64_t to = normal(range.to);
  if (from < 0 || from > to || to >= count) {
    throw InputError({network.origin, 0, 0, ""},
                     fmt::format("layers {} to {} are to be trained, but the network has {} layers",
                                 range.from, range.to, count));
  }
  for (std::size_t i = 0; i < trained.size(); ++i)
    trained[i] = trained[i] && layers[i] && *layers[i] >= from && *layers[i] <= to;
}

} // namespace

std::vector<std::optional<std::int64_t>> layers_of(const Graph& network) {
  std::vector<std::optional<std::int64_t>> layers(network.tensors().size());
  std::int64_t next = 0;
  for (const Operator& op : network.operators()) {
    const auto weight = layer_weight(network, op);
    if (weight && !layers[weight->index()])
      layers[weight->index()] = next++;
    for (const TensorId input : present(op.inputs)) {
      const TensorId root = weight_behind(network, input);
      if (is_weight(network.tensor(root)) && !layers[root.index()] && op.nest.dims.size() > 0)
        layers[root.index()] = std::max<std::int64_t>(0, next - 1);
    }
  }
  return layers;
}

std::vector<bool> may_be_trained(const Graph& network, const TrainableOptions& options) {
  Patterns train(options.train);
  Patterns freeze(options.freeze);
  std::vector<bool> trained;
  for (const Tensor& tensor : network.tensors()) {
    const bool wanted = options.train.empty() || train.match(tensor.name);
    trained.push_back(is_weight(tensor) && wanted && !freeze.match(tensor.name));
  }
  return trained;
}

std::vector<bool> trained_parameters(const Graph& network, const TrainableOptions& options,
                                     const std::vector<TensorId>& adapters) {
  const std::size_t count = network.tensors().size();
  const bool chosen = !options.train.empty() || options.lora || options.sparse;
  std::vector<bool> trained(count, false);
  for (std::size_t i = 0; i < count; ++i)
    trained[i] = !chosen && is_weight(network.tensors()[i]);
  Patterns train(options.train);
  Patterns freeze(options.freeze);
  for (std::size_t i = 0; i < count; ++i) {
    const Tensor& tensor = network.tensors()[i];
    if (!is_weight(tensor)) {
      if (tensor.kind == TensorKind::buffer || tensor.kind == TensorKind::constant)
        freeze.match(tensor.name); // which it is already
      continue;
    }
    if (train.match(tensor.name))
      trained[i] = true;
    if (freeze.match(tensor.name))
      trained[i] = false;
  }
  if (options.layers)
    keep_layers(network, *options.layers, trained);
  for (const TensorId adapter : adapters)
    trained[adapter.index()] = true;
  ProblemList problems;
  train.report(network, "no parameter matches the train pattern '{}'", problems);
  freeze.report(network, "no parameter matches the freeze pattern '{}'", problems);
  problems.throw_if_any();
  warn_of_guesses(network);
  warn_of_equal_weights(network);
  return trained;
}

} // namespace monet

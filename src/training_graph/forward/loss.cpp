// Appends the loss of a step and starts the backward phase; loss_terms.cpp has each kind.
#include "training_graph/forward/loss.hpp"

#include "workload/shared/op_types.hpp"

#include "monet/base/errors.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <type_traits>

namespace monet {

namespace {

/// `what` of `inputs` in the loss phase: a scalar.
TensorId scalar_of(StepBuilder& builder, std::string_view what,
                   std::vector<std::optional<TensorId>> inputs, std::string name) {
  const TensorId result = builder.add_tensor(
      std::move(name), {}, builder.graph().tensor(*inputs.front()).type, TensorKind::activation);
  NewOperator op = loss_operator(what, "");
  op.inputs = std::move(inputs);
  op.outputs = {result};
  builder.add_operator(std::move(op));
  return result;
}

/// The terms by their shares, added up.
std::optional<TensorId> sum_of(StepBuilder& builder, const std::vector<LossParts>& terms) {
  std::optional<TensorId> sum;
  for (const LossParts& term : terms) {
    TensorId part = *term.loss;
    if (!builder.shape(part).empty())
      part = builder.reshape(part, {}, loss_operator(ops::Reshape, ""));
    if (term.share != 1.0) {
      const TensorId share = builder.scalar(term.share, builder.graph().tensor(part).type);
      part = scalar_of(builder, ops::Mul, {part, share}, "loss.weighted");
    }
    sum = sum ? scalar_of(builder, ops::Add, {sum, part}, "loss.sum") : part;
  }
  return sum;
}

LossParts one_term(StepBuilder& builder, const Loss& loss, TensorId prediction,
                   const std::string& suffix) {
  return std::visit(
      [&](const auto& of) -> LossParts {
        using Kind = std::decay_t<decltype(of)>;
        if constexpr (std::is_same_v<Kind, NoLoss> || std::is_same_v<Kind, NetworkLoss> ||
                      std::is_same_v<Kind, LossSum>)
          throw InternalError("no loss of one output");
        else
          return loss_parts(builder, of, prediction, suffix);
      },
      loss);
}

std::optional<TensorId> floating_output(const Graph& network) {
  const auto found = std::ranges::find_if(
      network.outputs, [&](auto id) { return is_floating(network.tensor(id).type); });
  return found == network.outputs.end() ? std::nullopt : std::optional(*found);
}

/// Output by name. InputError if it is missing or no loss can be computed from it.
TensorId output_called(const Graph& network, const std::string& name, bool scalar) {
  const auto id = network.find_tensor(name);
  const bool output = id && std::ranges::find(network.outputs, *id) != network.outputs.end();
  if (!output)
    throw InputError({network.origin, 0, 0, fmt::format("output '{}'", name)},
                     "its loss is requested, but the network has no such output");
  const Tensor& tensor = network.tensor(*id);
  if (!is_floating(tensor.type) || (scalar && element_count(tensor) != 1))
    throw InputError({network.origin, 0, 0, fmt::format("output '{}'", name)},
                     scalar ? "is not a scalar, so it cannot be a loss"
                            : "holds integers, for which no loss is defined");
  return *id;
}

std::vector<TensorId> outputs_of(const Graph& network, const NetworkLoss& own) {
  std::vector<TensorId> outputs;
  for (const auto& [name, share] : own.outputs)
    outputs.push_back(output_called(network, name, true));
  for (const TensorId id : network.outputs) {
    const Tensor& tensor = network.tensor(id);
    if (outputs.empty() && is_floating(tensor.type) && element_count(tensor) == 1)
      outputs.push_back(id);
  }
  if (outputs.empty())
    throw InputError({network.origin, 0, 0, ""}, "the network has no scalar output to be its loss");
  return outputs;
}

TensorId scaled(StepBuilder& builder, TensorId gradient, std::optional<TensorId> seed) {
  if (!seed)
    return gradient;
  const Tensor source = builder.graph().tensor(gradient);
  const TensorId result =
      builder.add_tensor(source.name + ".scaled", source.shape, source.type, source.kind);
  builder.add_operator({.name = source.name + ".scale",
                        .op_type = ops::Mul,
                        .inputs = {gradient, *seed},
                        .outputs = {result}});
  return result;
}

/// Seed times a term's share; nullopt if that is 1.
std::optional<TensorId> scale_of(StepBuilder& builder, double share, std::optional<TensorId> seed,
                                 ElementType type) {
  if (share == 1.0)
    return seed;
  const TensorId own = builder.scalar(share, type);
  return seed ? scaled(builder, own, seed) : own;
}

/// Forward operator of the gradient: the log-softmax if the gradient reads its result, else the
/// loss.
std::optional<OpId> forward_of(const Graph& graph, const LossParts& term) {
  const auto read = graph.tensor(*term.gradient_reads.front()).producer;
  return read && graph.op(*read).phase == Phase::loss ? read : graph.tensor(*term.loss).producer;
}

/// Starts the gradient of an output that is a loss itself with the seed times the term's share.
void give_share(StepBuilder& builder, Differentiator& differentiator, const LossParts& term,
                TensorId of, std::optional<TensorId> seed) {
  const Tensor output = builder.graph().tensor(of);
  const ElementType type = builder.precision().gradient_type(output.type);
  const auto scale = scale_of(builder, term.share, seed, type);
  TensorId gradient = scale ? *scale : builder.scalar(1.0, type);
  if (!output.shape.empty()) {
    NewOperator op = loss_operator(ops::Reshape, "");
    op.phase = Phase::backward;
    gradient = builder.reshape(gradient, output.shape, std::move(op));
  }
  differentiator.give(of, gradient);
}

} // namespace

Loss resolve_loss(const Graph& network, const Loss& loss) {
  const auto scalar = floating_output(network);
  const auto* classes = std::get_if<CrossEntropy>(&loss);
  const bool given = !classes || classes->label_smoothing != 0.0 || classes->ignore_index ||
                     classes->class_axis || !classes->weight.empty() ||
                     classes->reduction != Reduction::mean || classes->of_log_probabilities;
  const bool has_loss = scalar && network.tensor(*scalar).shape.empty();
  return !given && has_loss ? Loss(NetworkLoss{}) : loss;
}

std::vector<TensorId> differentiated_outputs(const Graph& network, const Loss& loss) {
  if (const auto* own = std::get_if<NetworkLoss>(&loss))
    return outputs_of(network, *own);
  std::vector<TensorId> outputs;
  if (const auto* sum = std::get_if<LossSum>(&loss)) {
    for (const LossTerm& term : sum->terms) {
      const auto first = term.output.empty() ? floating_output(network)
                                             : output_called(network, term.output, false);
      if (first)
        outputs.push_back(*first);
    }
  } else if (std::holds_alternative<NoLoss>(loss)) {
    std::copy_if(network.outputs.begin(), network.outputs.end(), std::back_inserter(outputs),
                 [&](TensorId id) { return is_floating(network.tensor(id).type); });
  } else if (const auto first = floating_output(network)) {
    outputs.push_back(*first);
  }
  return outputs;
}

StepLoss add_loss(StepBuilder& builder, const Loss& loss,
                  const std::vector<TensorId>& predictions) {
  StepLoss made;
  if (std::holds_alternative<NoLoss>(loss))
    return made;
  const auto* own = std::get_if<NetworkLoss>(&loss);
  const auto* sum = std::get_if<LossSum>(&loss);
  made.is_own = own != nullptr;
  for (std::size_t i = 0; i < predictions.size(); ++i) {
    if (own) {
      made.terms.push_back({{}, predictions[i]});
      made.terms.back().loss = predictions[i];
      made.terms.back().share = own->outputs.empty() ? 1.0 : own->outputs[i].second;
    } else if (sum) {
      const std::string suffix = sum->terms.size() == 1 ? "" : fmt::format(".{}", i + 1);
      made.terms.push_back(one_term(builder, sum->terms[i].loss, predictions[i], suffix));
      made.terms.back().share = sum->terms[i].weight;
    } else {
      made.terms.push_back(one_term(builder, loss, predictions[i], ""));
    }
  }
  made.loss = sum_of(builder, made.terms);
  return made;
}

void start_backward(StepBuilder& builder, Differentiator& differentiator, const StepLoss& loss,
                    const std::vector<TensorId>& outputs, std::optional<TensorId> seed) {
  const auto new_gradient = [&](TensorId of) {
    const Tensor source = builder.graph().tensor(of);
    return builder.add_tensor(source.name + ".grad", source.shape,
                              builder.precision().gradient_type(source.type), TensorKind::gradient);
  };
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    if (loss.is_own) {
      give_share(builder, differentiator, loss.terms[i], outputs[i], seed);
      continue;
    }
    const TensorId gradient = new_gradient(outputs[i]);
    if (loss.terms.empty()) {
      builder.graph().inputs.push_back(gradient);
      differentiator.give(outputs[i], scaled(builder, gradient, seed));
      continue;
    }
    const LossParts& term = loss.terms[i];
    NewOperator op = loss_operator(term.gradient_type, kMonetDomain);
    op.phase = Phase::backward;
    op.forward_op = forward_of(builder.graph(), term);
    op.inputs = term.gradient_reads;
    op.attributes = term.attributes;
    op.outputs = {gradient};
    builder.add_operator(std::move(op));
    const ElementType type = builder.graph().tensor(gradient).type;
    differentiator.give(outputs[i],
                        scaled(builder, gradient, scale_of(builder, term.share, seed, type)));
  }
}

} // namespace monet

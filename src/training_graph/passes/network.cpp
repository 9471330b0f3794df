// Passes over the network: what is trained, casts, the loss, and the gradients that are needed.
#include "training_graph/build/scaled_casts.hpp"
#include "training_graph/passes/draft.hpp"

#include "monet/base/errors.hpp"

#include <fmt/core.h>

#include <algorithm>

namespace monet {

namespace {

bool use_fused_attention(StepDraft& draft, AttentionForm form, const TrainableOptions& trainable) {
  if (form == AttentionForm::fused)
    draft.body.graph = fuse_attention(draft.graph(), may_be_trained(draft.graph(), trainable));
  return form == AttentionForm::fused;
}

bool use_single_precision(StepDraft& draft) {
  auto single = in_single_precision(draft.graph());
  if (single)
    draft.body.graph = std::move(*single);
  return single.has_value();
}

bool adapt_weights(StepDraft& draft, const TrainableOptions& trainable) {
  if (!trainable.lora && !trainable.sparse)
    return false;
  AdaptedNetwork adapted = trainable.lora ? add_adapters(draft.graph(), *trainable.lora)
                                          : split_channels(draft.graph(), *trainable.sparse);
  draft.body.graph = std::move(adapted.graph);
  draft.adapters = std::move(adapted.adapters);
  draft.step.parts = std::move(adapted.parts);
  return true;
}

void choose_trained(StepDraft& draft, const TrainableOptions& trainable) {
  draft.trained = draft.step.training ? trained_parameters(draft.graph(), trainable, draft.adapters)
                                      : std::vector<bool>(draft.graph().tensors().size(), true);
}

bool detach_tensors(StepDraft& draft, const std::vector<Detach>& what) {
  if (what.empty())
    return false;
  DetachedNetwork made = detach(draft.graph(), what);
  draft.body.graph = std::move(made.graph);
  draft.detached = std::move(made.tensors);
  return true;
}

bool cast_products(StepDraft& draft, const Precision& precision) {
  if (precision.products)
    draft.body.graph =
        add_scaled_casts(draft.graph(), precision, draft.trained, draft.step.training);
  return precision.products.has_value();
}

bool cast_weights(StepDraft& draft, const Precision& precision) {
  if (casts_weights(precision))
    draft.body.graph = add_weight_casts(draft.graph(), precision, draft.trained);
  return casts_weights(precision);
}

void choose_loss(StepDraft& draft, const Loss& loss) {
  const Graph& network = draft.graph();
  draft.loss = resolve_loss(network, loss);
  draft.outputs = differentiated_outputs(network, draft.loss);
  if (draft.outputs.empty())
    throw InputError({network.origin, 0, 0, ""},
                     "the network has no floating-point output to train");
}

bool drop_other_outputs(StepDraft& draft, bool only_loss) {
  if (!only_loss || std::holds_alternative<NoLoss>(draft.loss))
    return false;
  std::vector<TensorId>& outputs = draft.graph().outputs;
  outputs = draft.outputs;
  std::ranges::sort(outputs);
  outputs.erase(std::unique(outputs.begin(), outputs.end()), outputs.end());
  return true;
}

void find_needed_gradients(StepDraft& draft) {
  const Graph& network = draft.graph();
  draft.trained.resize(network.tensors().size(), false);
  draft.detached.resize(network.tensors().size(), false);
  draft.needs = find_needs(network, draft.trained, draft.outputs, draft.detached);
  if (std::ranges::none_of(draft.outputs,
                           [&](TensorId id) { return draft.needs.depends[id.index()]; }))
    refuse_untrained(network, draft.needs, draft.outputs);
}

/// Values by tensor of the network as values by tensor of the step.
void follow(std::vector<bool>& values, const PreparedForward& forward) {
  std::vector<bool> mapped(forward.graph.tensors().size(), false);
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (forward.to_step[i])
      mapped[forward.to_step[i]->index()] = values[i];
  }
  values = std::move(mapped);
}

void make_forward(StepDraft& draft, const Precision& precision, bool frozen_batch_norm) {
  const GradientNeeds* needs = draft.step.training ? &draft.needs : nullptr;
  PreparedForward forward = prepare_forward(draft.graph(), precision, needs, frozen_batch_norm);
  for (auto* values : {&draft.needs.depends, &draft.needs.reaches, &draft.needs.weight_view})
    follow(*values, forward);
  for (TensorId& id : draft.outputs)
    id = *forward.to_step[id.index()];
  draft.forward_operators = forward.graph.operators().size();
  draft.body.graph = std::move(forward.graph);
}

bool drop_unread_inputs(StepDraft& draft, bool only_loss) {
  return only_loss && std::erase_if(draft.graph().inputs, [&](TensorId id) {
                        return draft.graph().tensor(id).consumers.empty();
                      }) != 0;
}

/// A network may be a training step that was written as ONNX; its phases follow each other.
void check_phases(StepDraft& draft) {
  const Graph& network = draft.graph();
  const Operator* previous = nullptr;
  for (const Operator& op : network.operators()) {
    if (op.phase == Phase::recompute && op.gradient_of == GradientOf::none)
      continue; // anywhere
    if (previous && op.phase < previous->phase) {
      throw InputError({network.origin, 0, 0, fmt::format("node '{}'", op.name)},
                       fmt::format("is of phase '{}', but follows '{}' of phase '{}'",
                                   name_of(op.phase), previous->name, name_of(previous->phase)));
    }
    if (op.gradient_of != GradientOf::none && op.phase != Phase::backward) {
      throw InputError({network.origin, 0, 0, fmt::format("node '{}'", op.name)},
                       "computes a gradient outside the backward phase");
    }
    previous = &op;
  }
}

using O = TrainingOptions;

constexpr StepPass kNetwork[]{
    {"check phases", "graph", "graph", over<check_phases>, for_inference},
    {"use fused attention", "graph", "graph",
     over<use_fused_attention, &O::attention, &O::trainable>, for_training},
    {"use single precision", "graph", "graph", over<use_single_precision>},
    {"adapt weights", "graph", "graph, adapters", over<adapt_weights, &O::trainable>, for_training},
    {"choose trained parameters", "graph, adapters", "trained parameters",
     over<choose_trained, &O::trainable>},
    {"detach tensors", "graph", "graph, detached tensors", over<detach_tensors, &O::detach>,
     for_training},
    {"cast products to fp8", "graph, trained parameters", "graph",
     over<cast_products, &O::precision>},
    {"cast weights", "graph, trained parameters", "graph", over<cast_weights, &O::precision>},
    {"choose the loss", "graph", "loss, differentiated outputs", over<choose_loss, &O::loss>,
     for_training},
    {"drop other outputs", "graph, loss, differentiated outputs", "graph",
     over<drop_other_outputs, &O::only_loss>, for_training},
    {"find needed gradients", "graph, trained parameters, detached tensors, differentiated outputs",
     "needed gradients", over<find_needed_gradients>, for_training},
    {"make the forward part", "graph, needed gradients, differentiated outputs",
     "graph, needed gradients, differentiated outputs",
     over<make_forward, &O::precision, &O::frozen_batch_norm>},
    {"drop unread inputs", "graph", "graph", over<drop_unread_inputs, &O::only_loss>, for_training},
};

} // namespace

std::span<const StepPass> network_passes() {
  return kNetwork;
}

} // namespace monet

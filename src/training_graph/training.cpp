// Builds the training graph: forward, loss, backward, storage and update.
#include "monet/training_graph/training.hpp"

#include "base/shared/checked.hpp"
#include "base/shared/text.hpp"
#include "training_graph/build/block_copies.hpp"
#include "training_graph/build/scaled_casts.hpp"
#include "training_graph/forward/forward.hpp"
#include "training_graph/forward/loss.hpp"
#include "training_graph/gradients/differentiate.hpp"
#include "training_graph/memory/storage.hpp"
#include "training_graph/update/optimizer.hpp"
#include "workload/shared/op_types.hpp"
#include "workload/shared/views.hpp"

#include "monet/base/errors.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <map>
#include <numeric>

namespace monet {

namespace {

GradientNeeds follow(const GradientNeeds& needs, const PreparedForward& forward) {
  GradientNeeds mapped;
  const std::size_t tensors = forward.graph.tensors().size();
  mapped.depends.assign(tensors, false);
  mapped.reaches.assign(tensors, false);
  mapped.weight_view.assign(tensors, false);
  for (std::size_t i = 0; i < forward.to_step.size(); ++i) {
    if (!forward.to_step[i])
      continue;
    const std::size_t to = forward.to_step[i]->index();
    mapped.depends[to] = needs.depends[i];
    mapped.reaches[to] = needs.reaches[i];
    mapped.weight_view[to] = needs.weight_view[i];
  }
  return mapped;
}

/// A gradient that is a part of something larger (of a concatenation's gradient) is copied, so that
/// the whole need not wait for the update with it.
TensorId detach(StepBuilder& builder, TensorId gradient) {
  const Graph& graph = builder.graph();
  const Tensor part = graph.tensor(gradient);
  const Tensor& root = graph.tensor(storage_root(graph, gradient));
  if (element_count(root) == element_count(part))
    return gradient;
  const TensorId copy =
      builder.add_tensor(part.name + ".copy", part.shape, part.type, TensorKind::gradient);
  builder.add_operator({.name = part.name + ".Copy",
                        .op_type = ops::Copy,
                        .domain = kMonetDomain,
                        .inputs = {gradient},
                        .outputs = {copy},
                        .attributes = {{"view", std::string(ops::Reshape)}}, // to the same shape
                        .forward_op = graph.op(*part.producer).forward_op});
  return copy;
}

/// A gradient that waits for its update belongs to the gradients, and so does the tensor it is a
/// view of. Its operator writes it in the type that such gradients are added up in.
void mark_parameter_gradient(Graph& graph, TensorId gradient, std::optional<ElementType> type) {
  const TensorId root = storage_root(graph, gradient);
  for (const TensorId id : {gradient, root}) {
    if (graph.tensor(id).kind == TensorKind::gradient)
      graph.tensor(id).kind = TensorKind::parameter_gradient;
  }
  if (!type || graph.tensor(root).kind != TensorKind::parameter_gradient)
    return;
  std::optional<TensorId> view = gradient;
  while (view) {
    graph.tensor(*view).type = *type;
    view = graph.tensor(*view).alias_of;
  }
}

/// Gradients of parameters, each in a separate tensor: (weight, gradient).
std::vector<std::pair<TensorId, TensorId>> parameter_gradients(StepBuilder& builder,
                                                               const Differentiator& differentiator,
                                                               std::size_t forward_tensors) {
  std::vector<std::pair<TensorId, TensorId>> gradients;
  for (std::size_t i = 0; i < forward_tensors; ++i) {
    const auto gradient = differentiator.gradient(TensorId(i));
    if (!gradient || builder.graph().tensor(TensorId(i)).kind != TensorKind::parameter)
      continue;
    gradients.emplace_back(TensorId(i), detach(builder, *gradient));
  }
  for (const auto& [weight, gradient] : gradients) {
    mark_parameter_gradient(builder.graph(), gradient, builder.precision().weight_gradients);
    builder.rename_tensor(gradient, builder.graph().tensor(weight).name + ".grad");
  }
  return gradients;
}

/// Gradients of tables, each of a micro-batch's own rows.
std::vector<std::pair<TensorId, std::vector<RowGradient>>>
row_gradients(StepBuilder& builder, const Differentiator& differentiator) {
  std::vector<std::pair<TensorId, std::vector<RowGradient>>> gradients;
  for (const auto& [table, parts] : differentiator.row_gradients())
    gradients.emplace_back(table, std::vector{coalesce(builder, table, parts)});
  return gradients;
}

/// Forward, loss and backward as often as a step runs them.
AccumulatedStep all_passes(AccumulatedStep one, const TrainingOptions& options,
                           const LossScale& scale, TrainingGraph& step) {
  const ElementType type = options.precision.reduction_type();
  step.micro_batches = step.passes = options.micro_batches;
  AccumulatedStep whole = accumulate_micro_batches(std::move(one), options.micro_batches, type);
  if (!options.sam_rho)
    return whole;
  step.passes *= 2;
  return sharpen(std::move(whole), {*options.sam_rho, type, scale.scale});
}

Graph add_updates(AccumulatedStep whole, const TrainingOptions& options, const LossScale& scale,
                  TrainingGraph& step) {
  StepBuilder builder(std::move(whole.graph), options.precision);
  std::vector<std::pair<TensorId, RowGradient>> of_rows;
  for (const auto& [table, parts] : whole.row_gradients)
    of_rows.emplace_back(table,
                         parts.size() == 1 ? parts.front() : coalesce(builder, table, parts));
  UpdateEmitter updates(builder, options.update, step);
  std::vector<std::pair<TensorId, TensorId>> all = whole.gradients;
  for (const auto& [table, gradient] : of_rows)
    all.emplace_back(table, gradient.values);
  control_gradients(builder, updates, all, options.update, scale, step);
  for (const auto& [weight, gradient] : whole.gradients)
    updates.add(weight, gradient);
  for (const auto& [table, gradient] : of_rows)
    updates.add(table, gradient.values, gradient.rows);
  updates.check_groups();
  update_scales(builder, step);
  if (options.precision.transposed == TransposedBlocks::requantise)
    return builder.release();
  std::vector<std::pair<TensorId, TensorId>> masters;
  for (const ParameterRecord& record : step.parameters) {
    if (record.master)
      masters.emplace_back(record.weight, *record.master);
  }
  return quantise_masters(builder.release(), masters);
}

/// Outputs of a step: the loss, the norm of the gradients, and everything it overwrites in place.
std::vector<TensorId> step_outputs(const Graph& graph, const TrainingGraph& step) {
  std::vector<TensorId> outputs;
  if (step.loss)
    outputs.push_back(*step.loss);
  if (step.gradient_norm)
    outputs.push_back(*step.gradient_norm);
  std::map<TensorId, TensorId> last; // version of each overwritten tensor
  for (std::size_t i = 0; i < graph.tensors().size(); ++i) {
    if (const auto root = graph.tensors()[i].alias_of)
      last.insert_or_assign(*root, TensorId(i));
  }
  for (std::size_t i = 0; i < graph.tensors().size(); ++i) {
    const auto root = graph.tensors()[i].alias_of;
    if (root && last.at(*root) == TensorId(i))
      outputs.emplace_back(i);
  }
  return outputs;
}

/// Tensors that the whole step stores: the reads of its backward part, or those that PyTorch keeps.
std::vector<TensorId> stored_tensors(const Graph& graph, std::vector<TensorId> kept,
                                     StorePolicy policy) {
  if (policy == StorePolicy::minimal) { // a result may be copied for its reader
    const std::vector<TensorId> read = tensors_read_by_backward(graph);
    kept.insert(kept.end(), read.begin(), read.end());
  }
  std::sort(kept.begin(), kept.end());
  kept.erase(std::unique(kept.begin(), kept.end()), kept.end());
  return kept;
}

Graph packed(Graph graph, bool any_part = false) {
  graph = keep_parts(graph, any_part);
  pack_stored(graph);
  return graph;
}

/// Stores the tensors that backward reads in their smallest form. If they take more than
/// `eager_bytes`, element-wise operators also run again, and parts are copied. PyTorch can keep
/// less: its fused operators keep less than their parts, and it keeps a copy of a view whose layout
/// is not the one read.
Graph store_least(const Graph& graph, const std::vector<bool>& requires_grad,
                  std::int64_t eager_bytes) {
  const auto bytes = [&](const Graph& of) {
    return find_stored(of, StorePolicy::minimal, requires_grad, {}).bytes;
  };
  const Graph scaled = recompute_scaled(graph);
  Graph least = packed(scaled);
  if (bytes(least) <= eager_bytes)
    return least;
  const Graph cheap = recompute_cheap(scaled);
  for (const bool any_part : {false, true}) {
    Graph again = packed(cheap, any_part);
    if (bytes(again) < bytes(least))
      least = std::move(again);
    if (bytes(least) <= eager_bytes)
      break;
  }
  return least;
}

/// Recomputes and packs tensors as the options specify, and finds those that remain to be stored.
StoredActivations choose_stored(Graph& graph, const StorageOptions& options,
                                const std::vector<bool>& requires_grad, std::int64_t eager_bytes,
                                const std::vector<TensorId>& divisors) {
  ProblemList problems;
  if (!options.recompute.empty())
    graph = recompute(graph, options.recompute, problems);
  const std::vector<TensorId> keep =
      forward_tensors_matching(graph, options.keep, "keep", problems);
  problems.throw_if_any();
  if (options.policy == StorePolicy::minimal) {
    graph = store_least(graph, requires_grad, eager_bytes);
  }
  StoredActivations stored = find_stored(graph, options.policy, requires_grad, divisors);
  for (const TensorId id : keep) {
    if (std::find(stored.tensors.begin(), stored.tensors.end(), id) != stored.tensors.end())
      continue;
    stored.tensors.push_back(id);
    stored.bytes += bytes_of(size_of(graph.tensor(id)));
  }
  return stored;
}

/// The casts before products: operands to fp8, weights to the type of activations.
Graph add_casts(Graph network, const Precision& precision, const std::vector<bool>& trained,
                bool training) {
  if (precision.products)
    network = add_scaled_casts(network, precision, trained, training);
  return casts_weights(precision) ? add_weight_casts(network, precision, trained) : network;
}

/// Casts of `products` lay their blocks themselves.
Graph lay_blocks(Graph graph, const Precision& precision) {
  return precision.products ? graph : with_block_copies(graph, precision);
}

/// A network may be a training step that was written as ONNX; its phases follow each other.
void check_phases(const Graph& network) {
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

/// Every operator that cannot be read, and every one that cannot be differentiated though a
/// gradient has to pass it; each with the path that the gradient would take, from a trained
/// parameter to the loss. In the order of the operators.
std::vector<InputProblem> explain_operators(const NetworkOutline& outline,
                                            const TrainingOptions& options) {
  const Graph& network = outline.graph;
  std::vector<bool> trained(network.tensors().size(), false);
  for (std::size_t i = 0; i < trained.size(); ++i) {
    const Tensor& tensor = network.tensors()[i];
    trained[i] =
        tensor.kind == TensorKind::parameter && is_floating(tensor.type) &&
        std::none_of(options.trainable.freeze.begin(), options.trainable.freeze.end(),
                     [&](const std::string& glob) { return glob_match(glob, tensor.name); });
  }
  const Loss loss = resolve_loss(network, options.loss);
  return explain_needs(outline, trained, differentiated_outputs(network, loss),
                       detached_tensors(network, options.detach));
}

} // namespace

std::string_view name_of(MemoryOwner owner) {
  static constexpr std::array<std::string_view, kMemoryOwners> kNames{
      "parameters",         "gradients",   "optimizer_state",
      "stored_activations", "temporaries", "offloaded_activations"};
  return kNames.at(static_cast<std::size_t>(owner));
}

std::int64_t total(const std::array<std::int64_t, kMemoryOwners>& bytes) {
  constexpr auto kHost = static_cast<std::size_t>(MemoryOwner::offloaded_activations);
  return std::accumulate(bytes.begin(), bytes.end(), std::int64_t{0}) - bytes[kHost];
}

void read_for(OnnxReadOptions& reading, const TrainingOptions& training) {
  reading.parameters = training.trainable.parameters;
  reading.buffers = training.trainable.buffers;
  reading.ties = training.trainable.ties;
  reading.explain = [training](const NetworkOutline& outline) {
    return explain_operators(outline, training);
  };
}

namespace {

/// Input for making a step: the network with adapters, casts and detached tensors, and its tensors
/// that need gradients.
struct ToTrain {
  Graph network;
  Loss loss;
  std::vector<TensorId> outputs; ///< outputs of which the loss is a function
  GradientNeeds needs;
  std::vector<WeightPart> parts; ///< parts of weights that were split
};

void leave_loss_alone(Graph& network, const std::vector<TensorId>& outputs) {
  network.outputs = outputs;
  std::sort(network.outputs.begin(), network.outputs.end());
  network.outputs.erase(std::unique(network.outputs.begin(), network.outputs.end()),
                        network.outputs.end());
}

ToTrain find_what_to_train(const Graph& original, const TrainingOptions& options) {
  ToTrain made;
  std::optional<AdaptedNetwork> adapted;
  if (options.trainable.lora)
    adapted = add_adapters(original, *options.trainable.lora);
  else if (options.trainable.sparse)
    adapted = split_channels(original, *options.trainable.sparse);
  const Graph& to_train = adapted ? adapted->graph : original;
  std::vector<bool> trained = trained_parameters(
      to_train, options.trainable, adapted ? adapted->adapters : std::vector<TensorId>{});
  DetachedNetwork detached = detach(to_train, options.detach);
  made.network = add_casts(std::move(detached.graph), options.precision, trained, true);
  trained.resize(made.network.tensors().size(), false);
  detached.tensors.resize(made.network.tensors().size(), false);
  made.loss = resolve_loss(made.network, options.loss);
  made.outputs = differentiated_outputs(made.network, made.loss);
  if (made.outputs.empty())
    throw InputError({made.network.origin, 0, 0, ""},
                     "the network has no floating-point output to train");
  if (options.only_loss && !std::holds_alternative<NoLoss>(made.loss))
    leave_loss_alone(made.network, made.outputs);
  made.needs = find_needs(made.network, trained, made.outputs, detached.tensors);
  const bool any = std::any_of(made.outputs.begin(), made.outputs.end(),
                               [&](TensorId id) { return made.needs.depends[id.index()]; });
  if (!any)
    refuse_untrained(made.network, made.needs, made.outputs);
  if (adapted)
    made.parts = std::move(adapted->parts);
  return made;
}

/// Chooses what the pass stores.
void store_pass(AccumulatedStep& one, const StepLoss& loss, const std::vector<bool>& requires_grad,
                const StorageOptions& options, TrainingGraph& step) {
  // The divisor of a mean is stored as well, unless it is stored already.
  std::vector<TensorId> divisors;
  for (const LossParts& term : loss.terms) {
    if (!loss.is_own && !term.keeps_divisor)
      divisors.push_back(*term.loss);
  }
  if (options.policy == StorePolicy::pytorch_eager)
    widen_dropout_masks(one.graph);
  step.store = options.policy;
  step.eager_bytes =
      find_stored(one.graph, StorePolicy::pytorch_eager, requires_grad, divisors).bytes;
  StoredActivations stored =
      choose_stored(one.graph, options, requires_grad, step.eager_bytes, divisors);
  if (!options.offload.empty()) {
    std::vector<TensorId> losses;
    for (const LossParts& term : loss.terms) {
      if (term.loss)
        losses.push_back(*term.loss);
    }
    if (one.loss)
      losses.push_back(*one.loss);
    one.graph = offload(one.graph, options.offload, losses, stored.tensors);
  }
  one.kept = std::move(stored.tensors);
  step.stored_bytes = stored.bytes;
}

/// Forward, loss and backward once.
AccumulatedStep make_pass(const ToTrain& what, const TrainingOptions& options, TrainingGraph& step,
                          LossScale& scale) {
  PreparedForward forward =
      prepare_forward(what.network, options.precision, &what.needs, options.frozen_batch_norm);
  if (options.only_loss) {
    std::erase_if(forward.graph.inputs,
                  [&](TensorId id) { return forward.graph.tensor(id).consumers.empty(); });
  }
  const GradientNeeds needs = follow(what.needs, forward);
  const std::size_t forward_tensors = forward.graph.tensors().size();
  const std::size_t forward_operators = forward.graph.operators().size();
  std::vector<TensorId> results;
  for (const TensorId id : what.outputs)
    results.push_back(*forward.to_step[id.index()]);
  StepBuilder builder(std::move(forward.graph), options.precision);
  const StepLoss loss = add_loss(builder, what.loss, results);
  Differentiator differentiator(builder, needs, forward_operators, options.storage.policy);
  if (!options.sparse_gradients.empty())
    differentiator.keep_rows_of(tables_of_rows(builder.graph(), needs, options.sparse_gradients));
  scale = add_loss_scale(builder, options.update, step);
  start_backward(builder, differentiator, loss, results,
                 loss_seed(builder, options.micro_batches, scale));
  differentiator.run();
  AccumulatedStep one;
  one.gradients = parameter_gradients(builder, differentiator, forward_tensors);
  one.row_gradients = row_gradients(builder, differentiator);
  one.loss = loss.loss;
  one.graph = lay_blocks(builder.release(), options.precision);
  store_pass(one, loss, needs.depends, options.storage, step);
  if (!options.paired_gradients.empty()) {
    one.graph = with_paired_gradients(one.graph, options.paired_gradients);
    step.paired = paired_products(one.graph);
  }
  if (!std::holds_alternative<NoLoss>(what.loss))
    one.graph.outputs.clear();
  return one;
}

/// Records at each product the formats to which units convert its operands, for cost models to
/// read.
void note_conversions(Graph& graph, const StepArithmetic& arithmetic) {
  for (std::size_t i = 0; i < graph.operators().size(); ++i) {
    Operator& op = graph.op(OpId(i));
    const std::optional<Mac>& unit = op.gradient_of == GradientOf::none ? arithmetic.forward
                                     : op.gradient_of == GradientOf::weight
                                         ? arithmetic.weight_gradient
                                         : arithmetic.input_gradient;
    if (op.nest.compute == ComputeKind::mac && unit)
      op.multiplied_in = unit->operands;
  }
}

} // namespace

TrainingGraph make_training_graph(const Graph& original, const TrainingOptions& options) {
  if (options.attention == AttentionForm::fused) {
    TrainingOptions exported = options;
    exported.attention = AttentionForm::exported;
    return make_training_graph(
        fuse_attention(original, may_be_trained(original, options.trainable)), exported);
  }
  if (const auto single = in_single_precision(original))
    return make_training_graph(*single, options);
  const ToTrain what = find_what_to_train(original, options);
  TrainingGraph step;
  step.training = true;
  step.accumulate = options.precision.accumulate;
  step.arithmetic = options.precision.arithmetic;
  step.parts = what.parts;
  LossScale scale;
  AccumulatedStep whole = all_passes(make_pass(what, options, step, scale), options, scale, step);
  step.loss = whole.loss;
  const std::vector<TensorId> kept = whole.kept;
  step.graph = add_updates(std::move(whole), options, scale, step);
  for (const TensorId id : step_outputs(step.graph, step))
    step.graph.outputs.push_back(id);
  note_conversions(step.graph, step.arithmetic);
  step.stored_activations = stored_tensors(step.graph, kept, options.storage.policy);
  step.owner = find_owners(step.graph, step.stored_activations);
  return step;
}

TrainingGraph make_inference_graph(const Graph& network, const Precision& precision) {
  check_phases(network);
  if (const auto single = in_single_precision(network))
    return make_inference_graph(*single, precision);
  TrainingGraph step;
  step.accumulate = precision.accumulate;
  step.arithmetic = precision.arithmetic;
  const std::vector<bool> trained(network.tensors().size(), true);
  step.graph = lay_blocks(
      prepare_forward(add_casts(network, precision, trained, false), precision, nullptr).graph,
      precision);
  note_conversions(step.graph, step.arithmetic);
  for (const TensorId scale : delayed_scales(step.graph))
    step.initial.push_back({scale, 1.0, {}});
  // The stored tensors of an imported step are those that its backward part reads.
  StoredActivations stored = find_stored(step.graph, StorePolicy::minimal, {}, {});
  step.stored_activations = std::move(stored.tensors);
  step.stored_bytes = stored.bytes;
  step.owner = find_owners(step.graph, step.stored_activations);
  return step;
}

std::size_t reported_owners(const TrainingGraph& step) {
  const bool host =
      std::ranges::find(step.owner, MemoryOwner::offloaded_activations) != step.owner.end();
  return static_cast<std::size_t>(kMemoryOwners - (host ? 0 : 1));
}

std::int64_t trained_count(const TrainingGraph& step) {
  std::int64_t count = 0;
  for (const ParameterRecord& record : step.parameters)
    count = checked_add(count, element_count(step.graph.tensor(record.weight)));
  return count;
}

MacSplit count_macs(const Graph& graph) {
  MacSplit split;
  for (const Operator& op : graph.operators()) {
    const std::int64_t count = macs(op.nest);
    if (op.phase == Phase::update) {
      split.update = checked_add(split.update, count);
      continue;
    }
    switch (op.gradient_of) {
    case GradientOf::none:
      split.forward = checked_add(split.forward, count);
      break;
    case GradientOf::input:
      split.backward_input = checked_add(split.backward_input, count);
      break;
    case GradientOf::weight:
      split.backward_weight = checked_add(split.backward_weight, count);
      break;
    case GradientOf::both:
      split.backward_input = checked_add(split.backward_input, count / 2);
      split.backward_weight = checked_add(split.backward_weight, count / 2);
      break;
    }
  }
  return split;
}

} // namespace monet

// Passes that append the loss and the backward part and choose the tensors that it stores.
#include "training_graph/build/block_copies.hpp"
#include "training_graph/memory/storage.hpp"
#include "training_graph/passes/draft.hpp"
#include "workload/shared/op_types.hpp"
#include "workload/shared/views.hpp"

#include "monet/base/errors.hpp"

#include <algorithm>
#include <utility>

namespace monet {

namespace {

void append_loss(StepDraft& draft, const Precision& precision) {
  draft.losses = add_loss(draft.open(precision), draft.loss, draft.outputs);
  draft.body.loss = draft.losses.loss;
  for (const LossParts& term : draft.losses.terms) {
    if (!draft.losses.is_own && !term.keeps_divisor)
      draft.divisors.push_back(*term.loss);
  }
}

bool scale_loss(StepDraft& draft, const UpdateOptions& update) {
  draft.scale = add_loss_scale(*draft.builder, update, draft.step);
  return draft.scale.scale.has_value();
}

/// A gradient that is a part of something larger (of a concatenation's gradient) is copied, so that
/// the whole need not wait for the update with it.
TensorId separate(StepBuilder& builder, TensorId gradient) {
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

/// Collects the gradients of parameters, each in a separate tensor, and those of tables.
void collect_gradients(StepBuilder& builder, const Differentiator& differentiator,
                       std::size_t forward_tensors, AccumulatedStep& body) {
  for (std::size_t i = 0; i < forward_tensors; ++i) {
    const auto gradient = differentiator.gradient(TensorId(i));
    if (gradient && builder.graph().tensor(TensorId(i)).kind == TensorKind::parameter)
      body.gradients.emplace_back(TensorId(i), separate(builder, *gradient));
  }
  for (const auto& [weight, gradient] : body.gradients) {
    mark_parameter_gradient(builder.graph(), gradient, builder.precision().weight_gradients);
    builder.rename_tensor(gradient, builder.graph().tensor(weight).name + ".grad");
  }
  for (const auto& [table, parts] : differentiator.row_gradients())
    body.row_gradients.emplace_back(table, std::vector{coalesce(builder, table, parts)});
}

void differentiate(StepDraft& draft, const StorageOptions& storage,
                   const std::vector<std::string>& sparse_gradients, std::int64_t micro_batches) {
  StepBuilder& builder = *draft.builder;
  Differentiator differentiator(builder, draft.needs, draft.forward_operators, storage.policy);
  if (!sparse_gradients.empty())
    differentiator.keep_rows_of(tables_of_rows(builder.graph(), draft.needs, sparse_gradients));
  start_backward(builder, differentiator, draft.losses, draft.outputs,
                 loss_seed(builder, micro_batches, draft.scale));
  differentiator.run();
  collect_gradients(builder, differentiator, draft.needs.depends.size(), draft.body);
  draft.close();
}

bool lay_out_blocks(StepDraft& draft, const Precision& precision) {
  if (precision.products) // whose casts do so
    return false;
  draft.body.graph = with_block_copies(draft.graph(), precision);
  return true;
}

/// Counts the bytes that PyTorch's autograd keeps, after its masks of dropout are made.
void count_eager(StepDraft& draft, const StorageOptions& storage) {
  if (storage.policy == StorePolicy::pytorch_eager)
    widen_dropout_masks(draft.graph());
  draft.step.store = storage.policy;
  draft.step.eager_bytes =
      find_stored(draft.graph(), StorePolicy::pytorch_eager, draft.needs.depends, draft.divisors)
          .bytes;
}

bool recompute_by_name(StepDraft& draft, const StorageOptions& storage) {
  ProblemList problems;
  if (!storage.recompute.empty())
    draft.body.graph = recompute(draft.graph(), storage.recompute, problems);
  draft.stored_by_name = forward_tensors_matching(draft.graph(), storage.keep, "keep", problems);
  problems.throw_if_any();
  return !storage.recompute.empty() || !storage.keep.empty();
}

Graph packed(const Graph& graph, bool any_part) {
  Graph made = keep_parts(graph, any_part);
  pack_stored(made);
  return made;
}

/// Stores the tensors that backward reads in their smallest form. If they take more than autograd
/// keeps, element-wise operators also run again, and parts are copied. PyTorch can keep less: its
/// fused operators keep less than their parts, and it keeps a copy of a view whose layout is not
/// the one read.
bool store_least(StepDraft& draft, const StorageOptions& storage) {
  if (storage.policy != StorePolicy::minimal)
    return false;
  const auto bytes = [&](const Graph& of) {
    return find_stored(of, StorePolicy::minimal, draft.needs.depends, {}).bytes;
  };
  const Graph scaled = recompute_scaled(draft.graph());
  Graph& least = draft.body.graph = packed(scaled, false);
  if (bytes(least) <= draft.step.eager_bytes)
    return true;
  const Graph cheap = recompute_cheap(scaled);
  for (const bool any_part : {false, true}) {
    Graph again = packed(cheap, any_part);
    if (bytes(again) < bytes(least))
      least = std::move(again);
    if (bytes(least) <= draft.step.eager_bytes)
      break;
  }
  return true;
}

void choose_stored(StepDraft& draft, const StorageOptions& storage) {
  StoredActivations stored =
      find_stored(draft.graph(), storage.policy, draft.needs.depends, draft.divisors);
  for (const TensorId id : draft.stored_by_name) {
    if (std::ranges::find(stored.tensors, id) != stored.tensors.end())
      continue;
    stored.tensors.push_back(id);
    stored.bytes += bytes_of(size_of(draft.graph().tensor(id)));
  }
  draft.body.kept = std::move(stored.tensors);
  draft.step.stored_bytes = stored.bytes;
}

bool offload_stored(StepDraft& draft, const StorageOptions& storage) {
  if (storage.offload.empty())
    return false;
  std::vector<TensorId> losses;
  for (const LossParts& term : draft.losses.terms) {
    if (term.loss)
      losses.push_back(*term.loss);
  }
  if (draft.body.loss)
    losses.push_back(*draft.body.loss);
  draft.body.graph = offload(draft.graph(), storage.offload, losses, draft.body.kept);
  return true;
}

bool pair_gradients(StepDraft& draft, const std::vector<std::string>& patterns) {
  if (patterns.empty())
    return false;
  draft.body.graph = with_paired_gradients(draft.graph(), patterns);
  draft.step.paired = paired_products(draft.graph());
  return true;
}

using O = TrainingOptions;

constexpr StepPass kBackward[]{
    {"append the loss", "graph, loss, differentiated outputs", "graph, losses",
     over<append_loss, &O::precision>, for_training},
    {"scale the loss", "graph", "graph, loss scale", over<scale_loss, &O::update>, for_training},
    {"differentiate", "graph, losses, loss scale, needed gradients, differentiated outputs",
     "graph, parameter gradients",
     over<differentiate, &O::storage, &O::sparse_gradients, &O::micro_batches>, for_training},
    {"lay out blocks", "graph", "graph", over<lay_out_blocks, &O::precision>},
    {"count what autograd keeps", "graph, losses, needed gradients", "graph, eager bytes",
     over<count_eager, &O::storage>, for_training},
    {"recompute by name", "graph", "graph, tensors stored by name",
     over<recompute_by_name, &O::storage>, for_training},
    {"store least", "graph, needed gradients, eager bytes", "graph", over<store_least, &O::storage>,
     for_training},
    {"choose stored tensors", "graph, losses, needed gradients, tensors stored by name",
     "stored tensors", over<choose_stored, &O::storage>},
    {"offload stored tensors", "graph, losses, stored tensors", "graph, stored tensors",
     over<offload_stored, &O::storage>, for_training},
    {"pair gradients", "graph", "graph", over<pair_gradients, &O::paired_gradients>, for_training},
};

} // namespace

std::span<const StepPass> backward_passes() {
  return kBackward;
}

} // namespace monet

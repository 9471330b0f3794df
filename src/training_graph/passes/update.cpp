// Passes that repeat forward and backward part, append the update and finish the step.
#include "training_graph/build/block_copies.hpp"
#include "training_graph/build/scaled_casts.hpp"
#include "training_graph/passes/draft.hpp"

#include <algorithm>
#include <map>
#include <utility>

namespace monet {

namespace {

/// Outputs of the network are no results of the step, unless their gradients are inputs.
bool drop_outputs(StepDraft& draft) {
  const bool drops = !std::holds_alternative<NoLoss>(draft.loss);
  if (drops)
    draft.graph().outputs.clear();
  return drops;
}

bool repeat_micro_batches(StepDraft& draft, const Precision& precision,
                          std::int64_t micro_batches) {
  draft.step.micro_batches = draft.step.passes = micro_batches;
  draft.body =
      accumulate_micro_batches(std::move(draft.body), micro_batches, precision.reduction_type());
  return micro_batches > 1;
}

bool sharpen_gradients(StepDraft& draft, const Precision& precision,
                       const std::optional<double>& rho) {
  if (!rho)
    return false;
  draft.step.passes *= 2;
  draft.body =
      sharpen(std::move(draft.body), {*rho, precision.reduction_type(), draft.scale.scale});
  return true;
}

void update_parameters(StepDraft& draft, const UpdateOptions& options, const Precision& precision) {
  StepBuilder& builder = draft.open(precision);
  std::vector<std::pair<TensorId, RowGradient>> of_rows;
  for (const auto& [table, parts] : draft.body.row_gradients)
    of_rows.emplace_back(table,
                         parts.size() == 1 ? parts.front() : coalesce(builder, table, parts));
  UpdateEmitter updates(builder, options, draft.step);
  std::vector<std::pair<TensorId, TensorId>> all = draft.body.gradients;
  for (const auto& [table, gradient] : of_rows)
    all.emplace_back(table, gradient.values);
  control_gradients(builder, updates, all, options, draft.scale, draft.step);
  for (const auto& [weight, gradient] : draft.body.gradients)
    updates.add(weight, gradient);
  for (const auto& [table, gradient] : of_rows)
    updates.add(table, gradient.values, gradient.rows);
  updates.check_groups();
  update_scales(builder, draft.step);
  draft.close();
}

bool quantise_from_masters(StepDraft& draft, const Precision& precision) {
  if (precision.transposed == TransposedBlocks::requantise)
    return false;
  std::vector<std::pair<TensorId, TensorId>> masters;
  for (const ParameterRecord& record : draft.step.parameters) {
    if (record.master)
      masters.emplace_back(record.weight, *record.master);
  }
  draft.body.graph = quantise_masters(std::move(draft.body.graph), masters);
  return !masters.empty();
}

/// Lists the results of the step: the loss, the norm of the gradients, and everything it overwrites
/// in place.
void list_outputs(StepDraft& draft) {
  Graph& graph = draft.graph();
  draft.step.loss = draft.body.loss;
  for (const auto& output : {draft.step.loss, draft.step.gradient_norm}) {
    if (output)
      graph.outputs.push_back(*output);
  }
  std::map<TensorId, TensorId> last; // version of each overwritten tensor
  for (std::size_t i = 0; i < graph.tensors().size(); ++i) {
    if (const auto root = graph.tensors()[i].alias_of)
      last.insert_or_assign(*root, TensorId(i));
  }
  for (std::size_t i = 0; i < graph.tensors().size(); ++i) {
    const auto root = graph.tensors()[i].alias_of;
    if (root && last.at(*root) == TensorId(i))
      graph.outputs.emplace_back(i);
  }
}

/// Records the arithmetic of the step, and at each product the formats to which units convert its
/// operands, for cost models to read.
void record_arithmetic(StepDraft& draft, const Precision& precision) {
  const StepArithmetic& arithmetic = draft.step.arithmetic = precision.arithmetic;
  draft.step.accumulate = precision.accumulate;
  for (std::size_t i = 0; i < draft.graph().operators().size(); ++i) {
    Operator& op = draft.graph().op(OpId(i));
    const std::optional<Mac>& unit = op.gradient_of == GradientOf::none ? arithmetic.forward
                                     : op.gradient_of == GradientOf::weight
                                         ? arithmetic.weight_gradient
                                         : arithmetic.input_gradient;
    if (op.nest.compute == ComputeKind::mac && unit)
      op.multiplied_in = unit->operands;
  }
}

void start_scales(StepDraft& draft) {
  for (const TensorId scale : delayed_scales(draft.graph()))
    draft.step.initial.push_back({scale, 1.0, {}});
}

/// The whole step stores the reads of its backward part, or what PyTorch keeps.
void assign_owners(StepDraft& draft, const StorageOptions& storage) {
  std::vector<TensorId> stored = std::move(draft.body.kept);
  if (storage.policy == StorePolicy::minimal) { // a result may be copied for its reader
    const std::vector<TensorId> read = tensors_read_by_backward(draft.graph());
    stored.insert(stored.end(), read.begin(), read.end());
  }
  std::ranges::sort(stored);
  stored.erase(std::unique(stored.begin(), stored.end()), stored.end());
  draft.step.owner = find_owners(draft.graph(), stored);
  draft.step.stored_activations = std::move(stored);
}

using O = TrainingOptions;

constexpr StepPass kUpdate[]{
    {"drop outputs of the network", "graph, loss", "graph", over<drop_outputs>, for_training},
    {"repeat micro-batches", "graph, losses, parameter gradients, stored tensors",
     "graph, losses, parameter gradients, stored tensors",
     over<repeat_micro_batches, &O::precision, &O::micro_batches>, for_training},
    {"sharpen gradients", "graph, parameter gradients, loss scale, stored tensors",
     "graph, parameter gradients, stored tensors",
     over<sharpen_gradients, &O::precision, &O::sam_rho>, for_training},
    {"append the update", "graph, parameter gradients, loss scale", "graph, parameter records",
     over<update_parameters, &O::update, &O::precision>, for_training},
    {"quantise from masters", "graph, parameter records", "graph",
     over<quantise_from_masters, &O::precision>, for_training},
    {"list outputs", "graph, losses", "graph", over<list_outputs>, for_training},
    {"record arithmetic", "graph", "graph", over<record_arithmetic, &O::precision>},
    {"start scales", "graph", "initial states", over<start_scales>, for_inference},
    {"assign owners", "graph, stored tensors", "owners", over<assign_owners, &O::storage>},
};

} // namespace

std::span<const StepPass> update_passes() {
  return kUpdate;
}

} // namespace monet

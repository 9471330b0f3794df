// make_training_graph() and make_inference_graph() run the passes over a draft of the step; further
// functions query a step.
#include "monet/training_graph/training.hpp"

#include "base/shared/checked.hpp"
#include "base/shared/text.hpp"
#include "training_graph/passes/draft.hpp"

#include <algorithm>
#include <array>
#include <numeric>

namespace monet {

namespace {

TrainingGraph make(const Graph& network, const TrainingOptions& options, bool training,
                   const PassObserver& observe) {
  StepDraft draft;
  draft.step.training = training;
  draft.body.graph = network;
  for (const auto passes : {network_passes(), backward_passes(), update_passes()})
    run_passes(passes, draft, options, observe);
  draft.step.graph = std::move(draft.body.graph);
  return std::move(draft.step);
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
    trained[i] = tensor.kind == TensorKind::parameter && is_floating(tensor.type) &&
                 std::ranges::none_of(options.trainable.freeze, [&](const std::string& glob) {
                   return glob_match(glob, tensor.name);
                 });
  }
  const Loss loss = resolve_loss(network, options.loss);
  return explain_needs(outline, trained, differentiated_outputs(network, loss),
                       detached_tensors(network, options.detach));
}

} // namespace

TrainingGraph make_training_graph(const Graph& forward, const TrainingOptions& options,
                                  const PassObserver& observe) {
  return make(forward, options, true, observe);
}

TrainingGraph make_inference_graph(const Graph& forward, const Precision& precision,
                                   const PassObserver& observe) {
  TrainingOptions options;
  options.precision = precision;
  return make(forward, options, false, observe);
}

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

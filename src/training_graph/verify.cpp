// Checks the invariants of a finished training graph.
#include "training_graph/memory/storage.hpp"
#include "workload/shared/views.hpp"

#include "monet/base/errors.hpp"
#include "monet/training_graph/training.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <set>

namespace monet {

namespace {

/// Phases follow each other, once for every pass, then the update.
void verify_phases(const Graph& graph, std::int64_t passes) {
  Phase reached = Phase::forward;
  std::int64_t begun = 1;
  for (const Operator& op : graph.operators()) {
    if (op.phase == Phase::recompute) // stands anywhere
      continue;
    // A forward part of nothing but views has no operators.
    if ((op.phase == Phase::forward || op.phase == Phase::loss) && reached == Phase::backward) {
      ++begun;
      reached = op.phase;
    }
    internal_check(op.phase >= reached, fmt::format("'{}' is out of its phase", op.name));
    reached = op.phase;
    internal_check(op.gradient_of == GradientOf::none || op.phase == Phase::backward,
                   fmt::format("'{}' computes a gradient outside the backward phase", op.name));
  }
  internal_check(begun <= passes, "more forward phases than passes");
}

void verify_record(const Graph& graph, const ParameterRecord& record) {
  const Tensor& weight = graph.tensor(record.weight);
  const Tensor& gradient = graph.tensor(record.gradient);
  const Tensor& updated = graph.tensor(record.updated);
  internal_check(weight.kind == TensorKind::parameter,
                 fmt::format("'{}' is not a parameter", weight.name));
  const Tensor& given = graph.tensor(storage_root(graph, record.gradient)); // a loss's share
  internal_check(gradient.kind == TensorKind::parameter_gradient || !given.producer,
                 fmt::format("gradient '{}' of '{}' has another kind", gradient.name, weight.name));
  internal_check(updated.alias_of == record.weight,
                 fmt::format("'{}' does not overwrite '{}'", updated.name, weight.name));
  internal_check(updated.producer && graph.op(*updated.producer).phase == Phase::update,
                 fmt::format("'{}' is not made by an update", updated.name));
  internal_check(updated.shape == weight.shape,
                 fmt::format("'{}' has another shape", updated.name));
  for (const TensorId state : record.states) {
    const Tensor& tensor = graph.tensor(state);
    internal_check(tensor.kind == TensorKind::optimizer_state, "a state has another kind");
    const bool read = std::ranges::any_of(
        tensor.consumers, [&](OpId id) { return graph.op(id).phase == Phase::update; });
    internal_check(read, fmt::format("the update of '{}' does not read its state", weight.name));
  }
}

} // namespace

void verify(const TrainingGraph& step) {
  verify(step.graph);
  verify_phases(step.graph, step.passes);
  std::set<TensorId> weights;
  for (const ParameterRecord& record : step.parameters) {
    internal_check(weights.insert(record.weight).second,
                   fmt::format("'{}' is updated twice", step.graph.tensor(record.weight).name));
    verify_record(step.graph, record);
  }
  internal_check(step.owner == find_owners(step.graph, step.stored_activations),
                 "an owner contradicts its tensor");
}

} // namespace monet

// Updates the histories and scales of delayed scaling, in the update phase.
#include "training_graph/build/scaled_casts.hpp"
#include "training_graph/update/optimizer.hpp"
#include "workload/shared/op_types.hpp"

#include <map>

namespace monet {

namespace {

/// A scale of delayed scaling: what is cast with it, and the maxima found.
struct DelayedScale {
  TensorId scale;
  ElementType type;
  std::vector<std::optional<TensorId>> maxima; ///< one for each micro-batch and call
};

std::vector<DelayedScale> find_scales(const Graph& graph) {
  std::vector<DelayedScale> found;
  std::map<TensorId, std::size_t> at;
  for (const Operator& op : graph.operators()) {
    // A recomputed cast has the same maxima.
    if (op.op_type != ops::ScaledCast || op.domain != kMonetDomain ||
        op.phase == Phase::recompute || op.outputs.size() < 2 || !op.outputs[1])
      continue;
    const auto [place, added] = at.try_emplace(*op.inputs[1], found.size());
    if (added)
      found.push_back({*op.inputs[1], graph.tensor(*op.outputs[0]).type, {}});
    found[place->second].maxima.push_back(op.outputs[1]);
  }
  return found;
}

} // namespace

void update_scales(StepBuilder& builder, TrainingGraph& step) {
  const auto& options = builder.precision().products;
  if (!options || options->scaling != ScaledProducts::Scaling::delayed)
    return;
  constexpr std::string_view kSuffix = ".scale";
  for (const DelayedScale& found : find_scales(builder.graph())) {
    std::string name = builder.graph().tensor(found.scale).name;
    if (name.ends_with(kSuffix))
      name.resize(name.size() - kSuffix.size());
    const TensorId history = builder.add_tensor(name + ".amax_history", {options->amax_history},
                                                ElementType::fp32, TensorKind::optimizer_state);
    NewOperator op{.name = name + ".AmaxUpdate",
                   .op_type = ops::AmaxUpdate,
                   .domain = kMonetDomain,
                   .inputs = {history, found.scale},
                   .attributes = {{"largest", largest_of(found.type)},
                                  {"margin", options->margin},
                                  {"most_recent", std::int64_t{options->most_recent ? 1 : 0}}},
                   .phase = Phase::update};
    op.inputs.insert(op.inputs.end(), found.maxima.begin(), found.maxima.end());
    for (const TensorId state : {history, found.scale}) {
      const Tensor before = builder.graph().tensor(state);
      const TensorId after = builder.add_tensor(before.name + ".updated", before.shape, before.type,
                                                TensorKind::optimizer_state);
      builder.graph().tensor(after).alias_of = state;
      op.outputs.emplace_back(after);
    }
    builder.add_operator(std::move(op));
    step.initial.push_back({found.scale, 1.0, {}});
  }
}

} // namespace monet

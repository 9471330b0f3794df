// Builds the step of one rank: a network with only its distinct layers, its training step, the
// partition over the mesh, and the blocks. Called by blocks.cpp.
#include "cluster/cost/layout.hpp"

#include "cluster/cost/costs.hpp"
#include "workload/shared/operators.hpp"
#include "workload/shared/views.hpp"

#include "monet/base/errors.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <numeric>
#include <optional>
#include <set>

namespace monet::cluster_cost {

namespace {

/// Maximum number of elements of a tensor with the samples of all data ranks. Its size in bits must
/// fit into 64 bits.
constexpr std::int64_t kMaxElements = std::int64_t{1} << 54;

/// The layer of an operator by its name: 12 for "h.12.mlp.fc". Nullopt before and after the layers.
std::optional<std::int64_t> layer_of(const std::string& name) {
  if (!name.starts_with("h."))
    return std::nullopt;
  std::int64_t layer = 0;
  std::size_t at = 2;
  for (; at < name.size() && name[at] >= '0' && name[at] <= '9' && at < 12; ++at)
    layer = layer * 10 + (name[at] - '0');
  if (at == 2 || at >= name.size() || name[at] != '.')
    return std::nullopt;
  return layer;
}

/// The number of layers after which a transformer's layers repeat.
std::int64_t period_of(const TransformerShape& shape) {
  return shape.experts ? shape.expert_every : 1;
}

/// The transformer with at most two periods of layers, the second of which represents all later
/// ones, and with the samples of all data ranks.
TransformerShape shortened(const TransformerShape& of, const ParallelStrategy& strategy) {
  TransformerShape shape = of;
  shape.layers = std::min(of.layers, 2 * period_of(of));
  shape.batch = strategy.samples_at_once();
  shape.vocabulary_multiple = of.vocabulary_multiple * strategy.parts_of(Divided::heads);
  return shape;
}

bool has_weight(const Graph& graph, const Operator& op) {
  return std::ranges::any_of(present(op.inputs), [&](TensorId id) {
    return graph.tensor(id).kind == TensorKind::parameter;
  });
}

/// Whether each operator lies between the products of attention: from a product of two results to
/// the next product.
std::vector<bool> between_attention_products(const Graph& graph) {
  std::vector<bool> between(graph.operators().size(), false);
  std::vector<bool> tensors(graph.tensors().size(), false);
  for (std::size_t i = 0; i < between.size(); ++i) {
    const Operator& op = graph.operators()[i];
    const bool product = op.nest.compute == ComputeKind::mac;
    const bool follows =
        std::ranges::any_of(present(op.inputs), [&](TensorId id) { return tensors[id.index()]; });
    between[i] = product ? !follows && !has_weight(graph, op) : follows;
    for (const TensorId id : present(op.outputs))
      tensors[id.index()] = between[i];
  }
  return between;
}

/// Indices of the operators at which blocks begin: the layers of a transformer, else every point at
/// which at most one result is live.
std::vector<std::size_t> block_begins(const Graph& graph) {
  std::vector<std::size_t> begins{0};
  std::optional<std::int64_t> current;
  bool layers = false;
  std::size_t count = 0;
  for (; count < graph.operators().size(); ++count) {
    if (graph.operators()[count].phase != Phase::forward)
      break;
  }
  for (std::size_t i = 0; i < count; ++i) {
    const auto layer = layer_of(graph.operators()[i].name);
    layers = layers || layer;
    if (layer && layer != current)
      begins.push_back(i);
    if (!layer && current && graph.operators()[i].nest.compute != ComputeKind::copy)
      begins.push_back(i);
    current = layer ? layer : (begins.back() == i ? std::nullopt : current);
  }
  if (layers)
    return begins;
  std::vector<std::size_t> last(graph.tensors().size(), 0); // last reader of each tensor
  for (std::size_t i = 0; i < count; ++i) {
    for (const TensorId id : present(graph.operators()[i].inputs))
      last[id.index()] = i;
  }
  std::set<std::size_t> live;
  for (std::size_t i = 0; i < count; ++i) {
    std::erase_if(live, [&](std::size_t tensor) { return last[tensor] < i; });
    if (i > 0 && live.size() <= 1)
      begins.push_back(i);
    for (const TensorId id : present(graph.operators()[i].outputs))
      live.insert(id.index());
  }
  return begins;
}

/// Names of the tensors to recompute, as exact patterns. Empty for fused attention, which always
/// recomputes its scores, and for full recomputation, whose cost run_layers_again() in blocks.cpp
/// adds.
std::vector<std::string> recomputed(const Graph& network, const ParallelStrategy& strategy,
                                    AttentionForm attention) {
  std::vector<std::string> names;
  if (strategy.recompute != RecomputeKind::selective || attention == AttentionForm::fused)
    return names;
  const std::vector<bool> between = between_attention_products(network);
  for (std::size_t i = 0; i < between.size(); ++i) {
    const Operator& op = network.operators()[i];
    if (!between[i] || has_view_rule(op))
      continue;
    for (const TensorId id : present(op.outputs))
      names.push_back(network.tensor(id).name);
  }
  return names;
}

std::string block_name(const Graph& graph, std::size_t begin, bool first) {
  const std::string& name = graph.operators()[begin].name;
  if (const auto layer = layer_of(name))
    return fmt::format("h.{}", *layer);
  return first ? "begin" : name;
}

std::vector<std::size_t> sequence_of(const ClusterWorkload& workload, std::size_t blocks) {
  std::vector<std::size_t> sequence;
  if (!workload.transformer) {
    for (std::size_t i = 0; i < blocks; ++i)
      sequence.push_back(i);
    return sequence;
  }
  const TransformerShape& shape = *workload.transformer;
  const auto made = static_cast<std::int64_t>(blocks) - 2; // modelled layers
  const std::int64_t period = std::min(period_of(shape), made);
  sequence.push_back(0);
  for (std::int64_t layer = 0; layer < shape.layers; ++layer) {
    const std::int64_t as = layer < made ? layer : made - period + layer % period;
    sequence.push_back(static_cast<std::size_t>(as + 1));
  }
  sequence.push_back(blocks - 1);
  return sequence;
}

} // namespace

std::string sizes_misfit(const ClusterWorkload& workload, const ParallelStrategy& strategy) {
  if (!workload.transformer)
    return strategy.layers.empty()
               ? ""
               : "layers of parts are given, but the network is not a transformer";
  const TransformerShape& shape = *workload.transformer;
  std::string problems;
  const auto check = [&](std::string_view what, std::int64_t size, Divided divided) {
    const std::int64_t parts = strategy.parts_of(divided);
    if (size % parts != 0)
      problems += fmt::format("{}{} ({}) are not divisible by {} ({}): {} are left over",
                              problems.empty() ? "" : "; ", what, size, divisor_of(divided), parts,
                              size % parts);
  };
  check("heads of keys", shape.heads_of_keys(), Divided::heads);
  const std::int64_t given =
      std::accumulate(strategy.layers.begin(), strategy.layers.end(), std::int64_t{0});
  if (strategy.layers.empty())
    check("layers", shape.layers, Divided::layers);
  else if (given != shape.layers)
    problems += fmt::format("{}the parts have {} layers together, the transformer has {}",
                            problems.empty() ? "" : "; ", given, shape.layers);
  check("tokens", shape.sequence, Divided::tokens);
  const std::int64_t of_experts = strategy.parts_of(Divided::experts);
  if (shape.experts)
    check("experts", *shape.experts, Divided::experts);
  else if (of_experts > 1)
    problems += fmt::format("{}{} is {}, but there are no experts", problems.empty() ? "" : "; ",
                            divisor_of(Divided::experts), of_experts);
  return problems;
}

RankLayout lay_out(const ClusterWorkload& workload, const ParallelStrategy& strategy) {
  const Graph network =
      workload.transformer
          ? make_transformer(shortened(*workload.transformer, strategy), kMaxElements)
          : workload.network(strategy.samples_at_once());
  TrainingOptions training = workload.training;
  const std::vector<std::string> again = recomputed(network, strategy, training.attention);
  training.storage.recompute.insert(training.storage.recompute.end(), again.begin(), again.end());
  RankLayout layout;
  const TrainingGraph step = fold_views(make_training_graph(network, training));
  layout.ranks = partition_step(step, mesh_of(strategy));
  layout.causal_masks = causal_masks(step, layout.ranks);
  const Graph& graph = layout.ranks.step.graph;
  std::vector<std::int64_t> begins;
  for (const std::size_t begin : block_begins(graph)) {
    layout.names.push_back(block_name(graph, begin, begins.empty()));
    begins.push_back(static_cast<std::int64_t>(begin));
  }
  layout.places = place_operators(layout.ranks.step, begins);
  layout.sequence = sequence_of(workload, begins.size());
  return layout;
}

} // namespace monet::cluster_cost

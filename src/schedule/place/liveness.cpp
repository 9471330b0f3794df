// Phases and live memory of a finished schedule, from its runs alone.
#include "schedule/place/finish.hpp"

#include "monet/base/errors.hpp"

#include <algorithm>
#include <limits>
#include <map>

namespace monet {

namespace {

/// Recomputed operators run as part of the backward pass.
Phase span_of(Phase phase) {
  return phase == Phase::recompute ? Phase::backward : phase;
}

/// Stays in memory from before the step until after it.
bool permanent(TensorKind kind) {
  return kind == TensorKind::parameter || kind == TensorKind::buffer ||
         kind == TensorKind::optimizer_state;
}

struct Life {
  std::int64_t begin = std::numeric_limits<std::int64_t>::max();
  std::int64_t end = 0;
};

/// The tensor whose storage this one shares, or itself.
TensorId root_of(const Graph& graph, TensorId id) {
  for (std::size_t hops = 0; graph.tensor(id).alias_of; ++hops) {
    internal_check(hops < graph.tensors().size(), "storage is shared in a circle");
    id = *graph.tensor(id).alias_of;
  }
  return id;
}

/// From the first write (0 when nobody writes it) to the end of the last reader, of what shares its
/// storage as well.
std::vector<Life> lives(const Graph& graph, const Timeline& timeline) {
  std::vector<Life> of_op(graph.operators().size());
  for (const TileRun& run : timeline.runs) {
    Life& life = of_op[run.op.index()];
    life.begin = std::min(life.begin, run.start.value);
    life.end = std::max(life.end, run.end.value);
  }
  std::vector<Life> result(graph.tensors().size());
  for (std::size_t t = 0; t < graph.tensors().size(); ++t) {
    const Tensor& tensor = graph.tensors()[t];
    const TensorId root = root_of(graph, TensorId(t));
    Life& life = result[root.index()];
    if (root == TensorId(t)) {
      life.begin = tensor.producer ? of_op[tensor.producer->index()].begin : 0;
      if (permanent(tensor.kind))
        life.end = timeline.makespan.value;
    }
    if (tensor.producer)
      life.end = std::max(life.end, of_op[tensor.producer->index()].end);
    for (const OpId reader : tensor.consumers)
      life.end = std::max(life.end, of_op[reader.index()].end);
  }
  for (const TensorId output : graph.outputs)
    result[root_of(graph, output).index()].end = timeline.makespan.value;
  return result;
}

} // namespace

void add_phases(const TrainingGraph& step, Timeline& timeline) {
  std::int64_t makespan = 0;
  std::map<Phase, std::int64_t> ends;
  for (const TileRun& run : timeline.runs) {
    std::int64_t& end = ends[span_of(step.graph.op(run.op).phase)];
    end = std::max(end, run.end.value);
    makespan = std::max(makespan, run.end.value);
  }
  for (const Transfer& transfer : timeline.transfers)
    makespan = std::max(makespan, timeline.arrival_of(transfer).value);
  timeline.makespan = {makespan};
  std::int64_t at = 0;
  for (const Phase phase : {Phase::forward, Phase::loss, Phase::backward, Phase::update}) {
    const auto found = ends.find(phase);
    if (found == ends.end())
      continue;
    const std::int64_t end = std::max(at, found->second);
    timeline.phases.push_back({phase, {at}, {end}});
    at = end;
  }
  if (!timeline.phases.empty())
    timeline.phases.back().end = {makespan};
}

void add_liveness(const TrainingGraph& step, Timeline& timeline) {
  const Graph& graph = step.graph;
  std::map<std::int64_t, OwnerBytes> changes;
  const std::vector<Life> life = lives(graph, timeline);
  for (std::size_t t = 0; t < graph.tensors().size(); ++t) {
    const std::int64_t bytes = bytes_of(size_of(graph.tensors()[t]));
    if (graph.tensors()[t].alias_of || bytes == 0 || life[t].begin >= life[t].end)
      continue;
    const auto owner = static_cast<std::size_t>(step.owner.at(t));
    changes[life[t].begin][owner] += bytes;
    changes[life[t].end][owner] -= bytes;
  }
  OwnerBytes now{};
  for (const auto& [time, change] : changes) {
    if (std::all_of(change.begin(), change.end(), [](std::int64_t b) { return b == 0; }))
      continue;
    for (std::size_t owner = 0; owner < now.size(); ++owner)
      now[owner] += change[owner];
    timeline.live.push_back({{time}, now});
    if (total(now) > total(timeline.peak.live))
      timeline.peak = timeline.live.back();
  }
}

} // namespace monet

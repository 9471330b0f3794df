// Phases and live memory of a finished schedule, from its runs alone.
#include "schedule/place/finish.hpp"

#include "monet/base/errors.hpp"

#include <algorithm>
#include <array>
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

/// The tensor whose storage this one shares, or itself.
TensorId root_of(const Graph& graph, TensorId id) {
  for (std::size_t hops = 0; graph.tensor(id).alias_of; ++hops) {
    internal_check(hops < graph.tensors().size(), "storage is shared in a circle");
    id = *graph.tensor(id).alias_of;
  }
  return id;
}

} // namespace

std::vector<TensorLife> tensor_lives(const Graph& graph, const Timeline& timeline) {
  std::vector<TensorLife> of_op(graph.operators().size());
  for (const TileRun& run : timeline.runs) {
    TensorLife& life = of_op[run.op.index()];
    life.begin = std::min(life.begin, run.start.value);
    life.end = std::max(life.end, run.end.value);
  }
  std::vector<TensorLife> result(graph.tensors().size());
  for (std::size_t t = 0; t < graph.tensors().size(); ++t) {
    const Tensor& tensor = graph.tensors()[t];
    const TensorId root = root_of(graph, TensorId(t));
    TensorLife& life = result[root.index()];
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

namespace {

constexpr std::size_t kMostPhases = 4;

/// Which phases run tiles over time.
class PhaseShares {
public:
  PhaseShares(const Timeline& timeline, const TrainingGraph& step) : timeline_(timeline) {
    for (const TileRun& run : timeline.runs) {
      const std::size_t phase = place_of(span_of(step.graph.op(run.op).phase));
      ++changes_[run.start.value].at(phase);
      --changes_[run.end.value].at(phase);
    }
  }

  std::vector<Cycles> find() {
    std::array<std::int64_t, kMostPhases> running{};
    std::int64_t at = 0;
    std::size_t before = kMostPhases; // the phase that ran last
    std::int64_t idle = 0;            // before the first one
    changes_[timeline_.makespan.value];
    for (const auto& [time, change] : changes_) {
      const std::int64_t length = time - at;
      const auto sharing = kMostPhases - std::ranges::count(running, std::int64_t{0});
      if (sharing > 0) {
        for (std::size_t p = 0; p < kMostPhases; ++p) {
          if (running.at(p) > 0)
            shared_.at(p).at(static_cast<std::size_t>(sharing) - 1) += length;
        }
      } else if (before < kMostPhases) {
        shared_.at(before)[0] += length;
      } else {
        idle += length;
      }
      for (std::size_t p = 0; p < kMostPhases; ++p) {
        running.at(p) += change.at(p);
        if (running.at(p) > 0)
          before = p;
      }
      at = time;
    }
    shared_[0][0] += idle;
    return rounded();
  }

private:
  std::size_t place_of(Phase phase) const {
    const auto found = std::ranges::find(timeline_.phases, phase, &PhaseSpan::phase);
    return static_cast<std::size_t>(found - timeline_.phases.begin());
  }

  /// Whole cycles of the same sum: the largest remainders are rounded up, the first of equals.
  std::vector<Cycles> rounded() const {
    constexpr std::int64_t kParts = 12; // of a cycle: thirds and quarters are whole
    std::vector<Cycles> whole(timeline_.phases.size());
    std::vector<std::pair<std::int64_t, std::size_t>> parts; // by what is missing
    Cycles sum;
    for (std::size_t p = 0; p < whole.size(); ++p) {
      std::int64_t rest = 0;
      for (std::int64_t n = 1; n <= std::int64_t{kMostPhases}; ++n) {
        const std::int64_t cycles = shared_.at(p).at(static_cast<std::size_t>(n) - 1);
        whole[p] = whole[p] + Cycles{cycles / n};
        rest += cycles % n * (kParts / n);
      }
      whole[p] = whole[p] + Cycles{rest / kParts};
      sum = sum + whole[p];
      parts.emplace_back(-(rest % kParts), p);
    }
    std::ranges::sort(parts);
    for (std::size_t i = 0; sum < timeline_.makespan; ++i, sum = sum + Cycles{1})
      whole[parts.at(i).second] = whole[parts[i].second] + Cycles{1};
    return whole;
  }

  const Timeline& timeline_;
  std::map<std::int64_t, std::array<std::int64_t, kMostPhases>> changes_;
  /// Per phase, of cycles in which one runs, two do, ...
  std::array<std::array<std::int64_t, kMostPhases>, kMostPhases> shared_{};
};

} // namespace

std::vector<Cycles> phase_latencies(const Timeline& timeline, const TrainingGraph& step) {
  std::vector<Cycles> lengths;
  for (const PhaseSpan& phase : timeline.phases)
    lengths.push_back(phase.end - phase.start);
  if (std::ranges::find(lengths, Cycles{}) == lengths.end())
    return lengths;
  return PhaseShares(timeline, step).find();
}

void add_liveness(const TrainingGraph& step, Timeline& timeline) {
  const Graph& graph = step.graph;
  std::map<std::int64_t, OwnerBytes> changes;
  const std::vector<TensorLife> life = tensor_lives(graph, timeline);
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

// Computes the phases and the live memory of a finished schedule from its runs alone; the event
// scheduler calls it last.
#include "schedule/placement/timeline_writer.hpp"

#include "monet/base/errors.hpp"
#include "monet/schedule/schedule.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <optional>
#include <vector>

namespace monet {

namespace {

/// Phase in which an operator's time counts: recomputed operators run as part of the backward pass.
Phase span_of(Phase phase) {
  return phase == Phase::recompute ? Phase::backward : phase;
}

/// True for tensors that stay in memory from before the step until after it.
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

/// Cycles [begin, end) during which a tensor or a part of it is live.
struct TensorLife {
  std::int64_t begin = std::numeric_limits<std::int64_t>::max();
  std::int64_t end = 0;
};

/// Life of each tensor that owns its storage: from the first start of its producer (0 without
/// producer) to the end of the last reader, including tensors that share the storage. Permanent
/// tensors and outputs live to the makespan.
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

/// Changes of the live bytes of each owner, by time.
using Changes = std::map<std::int64_t, OwnerBytes>;

void add(Changes& changes, const TensorLife& life, std::size_t owner, std::int64_t bytes) {
  if (bytes == 0 || life.begin >= life.end)
    return;
  changes[life.begin][owner] += bytes;
  changes[life.end][owner] -= bytes;
}

/// Live bytes over time: one sample per change.
std::vector<MemorySample> samples_of(const Changes& changes) {
  std::vector<MemorySample> samples;
  OwnerBytes now{};
  for (const auto& [time, change] : changes) {
    if (std::ranges::all_of(change, [](std::int64_t b) { return b == 0; }))
      continue;
    for (std::size_t owner = 0; owner < now.size(); ++owner)
      now[owner] += change[owner];
    samples.push_back({{time}, now});
  }
  return samples;
}

/// The first sample with the most bytes.
MemorySample peak_of(const std::vector<MemorySample>& samples) {
  MemorySample peak;
  for (const MemorySample& sample : samples) {
    if (total(sample.live) > total(peak.live))
      peak = sample;
  }
  return peak;
}

/// Lives of the parts of tensors that one stack makes and reads in slices; see peak_by_slices().
class Slices {
public:
  Slices(const TrainingGraph& step, const TileGraph& tiles, const Timeline& timeline)
      : step_(step), tiles_(tiles), runs_(tiles.tiles.size()) {
    for (const TileRun& run : timeline.runs)
      runs_[run.tile.index()] = {run.start.value, run.end.value};
    in_stack_ = inside_a_stack();
  }

  bool any() const { return std::ranges::find(in_stack_, true) != in_stack_.end(); }
  bool in_stack(std::size_t tensor) const { return in_stack_[tensor]; }

  /// Adds the lives of the tensor's parts to `changes`. Tiles that add into the same box share a
  /// part.
  void add_parts(std::size_t tensor, Changes& changes) {
    const Tensor& made = step_.graph.tensors()[tensor];
    const LoopNest& nest = step_.graph.op(*made.producer).nest;
    const std::uint32_t first = tiles_.tiles_of(*made.producer).first;
    const std::vector<std::int64_t> ends = ends_of_parts(TensorId(tensor), made);
    std::map<Box, std::pair<TensorLife, std::int64_t>> parts;
    for (std::uint32_t i = 0; i < ends.size(); ++i) {
      tiles_.ranges(TileId(first + i), ranges_);
      for (const Access& access : nest.operands) {
        if (access.tensor != TensorId(tensor) || access.mode == AccessMode::read)
          continue;
        const Box box = region(access, ranges_, made.shape);
        auto& [life, bytes] = parts[box];
        life.begin = std::min(life.begin, runs_[first + i].begin);
        life.end = std::max(life.end, ends[i]);
        bytes = bytes_in(box, made);
      }
    }
    for (const auto& [box, part] : parts)
      add(changes, part.first, static_cast<std::size_t>(step_.owner.at(tensor)), part.second);
  }

private:
  /// Per tensor: true if several tiles make it and only operators of its stack read it.
  std::vector<bool> inside_a_stack() const {
    const Graph& graph = step_.graph;
    std::vector<bool> inside(graph.tensors().size(), false);
    for (std::size_t t = 0; t < inside.size(); ++t) {
      const Tensor& tensor = graph.tensors()[t];
      if (!tensor.producer || tensor.consumers.empty() || tensor.alias_of ||
          tensor.kind == TensorKind::buffer || tensor.kind == TensorKind::optimizer_state)
        continue;
      const std::uint32_t stack = tiles_.stack_of[tensor.producer->index()];
      const auto [first, last] = tiles_.tiles_of(*tensor.producer);
      inside[t] = last - first > 1 && std::ranges::all_of(tensor.consumers, [&](OpId reader) {
                    return tiles_.stack_of[reader.index()] == stack;
                  });
    }
    for (const Tensor& tensor : graph.tensors()) {
      if (tensor.alias_of)
        inside[tensor.alias_of->index()] = false;
    }
    for (const TensorId output : graph.outputs)
      inside[output.index()] = false;
    return inside;
  }

  /// Per tile that makes a part of the tensor: the end of the part's last reader, or of the tile
  /// itself.
  std::vector<std::int64_t> ends_of_parts(TensorId id, const Tensor& tensor) const {
    const auto [first, last] = tiles_.tiles_of(*tensor.producer);
    std::vector<std::int64_t> ends;
    for (std::uint32_t t = first; t < last; ++t)
      ends.push_back(runs_[t].end);
    for (const OpId reader : tensor.consumers) {
      const auto [begin, end] = tiles_.tiles_of(reader);
      for (std::uint32_t t = begin; t < end; ++t) {
        for (const TileEdge& edge : tiles_.edges_into(TileId(t))) {
          if (edge.tensor == id && edge.from.value >= first && edge.from.value < last)
            ends[edge.from.value - first] = std::max(ends[edge.from.value - first], runs_[t].end);
        }
      }
    }
    return ends;
  }

  static std::int64_t bytes_in(const Box& box, const Tensor& whole) {
    Tensor part = whole;
    for (std::size_t axis = 0; axis < box.size(); ++axis)
      part.shape[axis] = box[axis].size();
    return bytes_of(size_of(part));
  }

  const TrainingGraph& step_;
  const TileGraph& tiles_;
  std::vector<TensorLife> runs_; ///< per tile
  std::vector<bool> in_stack_;
  std::vector<Interval> ranges_;
};

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

namespace {

constexpr std::size_t kMaxPhases = 4;

/// Cycles in which each phase runs tiles, alone or together with other phases.
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
    std::array<std::int64_t, kMaxPhases> running{};
    std::int64_t at = 0;
    std::size_t before = kMaxPhases; // the phase that ran last
    std::int64_t idle = 0;           // cycles before any phase runs
    changes_[timeline_.makespan.value];
    for (const auto& [time, change] : changes_) {
      const std::int64_t length = time - at;
      const auto sharing = kMaxPhases - std::ranges::count(running, std::int64_t{0});
      if (sharing > 0) {
        for (std::size_t p = 0; p < kMaxPhases; ++p) {
          if (running.at(p) > 0)
            shared_.at(p).at(static_cast<std::size_t>(sharing) - 1) += length;
        }
      } else if (before < kMaxPhases) {
        shared_.at(before)[0] += length;
      } else {
        idle += length;
      }
      for (std::size_t p = 0; p < kMaxPhases; ++p) {
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

  /// Rounds to whole cycles with the same sum. The largest remainders are rounded up, earlier
  /// phases first.
  std::vector<Cycles> rounded() const {
    constexpr std::int64_t kParts = 12; // per cycle: thirds and quarters are whole
    std::vector<Cycles> whole(timeline_.phases.size());
    std::vector<std::pair<std::int64_t, std::size_t>> parts; // (negative remainder, phase)
    Cycles sum;
    for (std::size_t p = 0; p < whole.size(); ++p) {
      std::int64_t rest = 0;
      for (std::int64_t n = 1; n <= std::int64_t{kMaxPhases}; ++n) {
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
  std::map<std::int64_t, std::array<std::int64_t, kMaxPhases>> changes_;
  /// [phase][n - 1]: cycles in which the phase is one of n that run tiles.
  std::array<std::array<std::int64_t, kMaxPhases>, kMaxPhases> shared_{};
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
  Changes changes;
  const std::vector<TensorLife> life = tensor_lives(graph, timeline);
  for (std::size_t t = 0; t < graph.tensors().size(); ++t) {
    const Tensor& tensor = graph.tensors()[t];
    if (!tensor.alias_of)
      add(changes, life[t], static_cast<std::size_t>(step.owner.at(t)), bytes_of(size_of(tensor)));
  }
  timeline.live = samples_of(changes);
  timeline.peak = peak_of(timeline.live);
}

std::optional<MemorySample> peak_by_slices(const TrainingGraph& step, const TileGraph& tiles,
                                           const Timeline& timeline) {
  if (tiles.stack_of.empty())
    return {};
  Slices slices(step, tiles, timeline);
  if (!slices.any())
    return {};
  Changes changes;
  const std::vector<TensorLife> lives = tensor_lives(step.graph, timeline);
  for (std::size_t t = 0; t < lives.size(); ++t) {
    const Tensor& tensor = step.graph.tensors()[t];
    if (slices.in_stack(t))
      slices.add_parts(t, changes);
    else if (!tensor.alias_of)
      add(changes, lives[t], static_cast<std::size_t>(step.owner.at(t)), bytes_of(size_of(tensor)));
  }
  return peak_of(samples_of(changes));
}

} // namespace monet

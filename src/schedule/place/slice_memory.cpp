#include "monet/schedule/slice_memory.hpp"

#include "schedule/place/finish.hpp"

#include <algorithm>
#include <map>
#include <vector>

namespace monet {

namespace {

using Changes = std::map<std::int64_t, OwnerBytes>;

void add(Changes& changes, const TensorLife& life, std::size_t owner, std::int64_t bytes) {
  if (bytes == 0 || life.begin >= life.end)
    return;
  changes[life.begin][owner] += bytes;
  changes[life.end][owner] -= bytes;
}

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

  /// What the tensor's parts come to: tiles that add into one place share it.
  void add_parts(std::size_t tensor, Changes& changes) {
    const Tensor& made = step_.graph.tensors()[tensor];
    const LoopNest& nest = step_.graph.op(*made.producer).nest;
    const std::uint32_t first = tiles_.tiles_of(*made.producer).first;
    const std::vector<std::int64_t> ends = ends_of_parts(TensorId(tensor), made);
    std::map<std::vector<std::int64_t>, std::pair<TensorLife, std::int64_t>> parts;
    for (std::uint32_t i = 0; i < ends.size(); ++i) {
      tiles_.ranges(TileId(first + i), ranges_);
      for (const Access& access : nest.operands) {
        if (access.tensor != TensorId(tensor) || access.mode == AccessMode::read)
          continue;
        const Box box = region(access, ranges_, made.shape);
        auto& [life, bytes] = parts[corners(box)];
        life.begin = std::min(life.begin, runs_[first + i].begin);
        life.end = std::max(life.end, ends[i]);
        bytes = bytes_in(box, made);
      }
    }
    for (const auto& [box, part] : parts)
      add(changes, part.first, static_cast<std::size_t>(step_.owner.at(tensor)), part.second);
  }

private:
  /// Per tensor: made in several tiles and read inside one stack, and nowhere else.
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

  /// Per tile that makes some of the tensor: the end of the last that reads of it, or its own.
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

  static std::vector<std::int64_t> corners(const Box& box) {
    std::vector<std::int64_t> all;
    for (const Interval& side : box) {
      all.push_back(side.begin);
      all.push_back(side.end);
    }
    return all;
  }

  const TrainingGraph& step_;
  const TileGraph& tiles_;
  std::vector<TensorLife> runs_; ///< per tile
  std::vector<bool> in_stack_;
  std::vector<Interval> ranges_;
};

} // namespace

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
  MemorySample peak;
  OwnerBytes now{};
  for (const auto& [time, change] : changes) {
    for (std::size_t owner = 0; owner < now.size(); ++owner)
      now[owner] += change[owner];
    if (total(now) > total(peak.live))
      peak = {{time}, now};
  }
  return peak;
}

} // namespace monet

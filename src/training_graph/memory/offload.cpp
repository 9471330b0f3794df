// Moves stored tensors to the host and back before the backward part needs them.
#include "training_graph/forward/repeat_pass.hpp"
#include "training_graph/memory/run_sequence.hpp"
#include "training_graph/memory/storage.hpp"
#include "workload/shared/op_types.hpp"
#include "workload/shared/views.hpp"

#include "monet/base/errors.hpp"

#include <algorithm>
#include <map>
#include <set>

namespace monet {

namespace {

/// On the device from step to step, to the end of this one, or for other micro-batches.
bool stays(const Graph& graph, const std::vector<bool>& once, TensorId id) {
  const Tensor& tensor = graph.tensor(id);
  if (tensor.producer && once[tensor.producer->index()])
    return true;
  return tensor.kind == TensorKind::buffer || tensor.kind == TensorKind::constant ||
         tensor.kind == TensorKind::parameter || tensor.alias_of ||
         std::ranges::any_of(graph.outputs,
                             [&](TensorId output) { return storage_root(graph, output) == id; });
}

/// Stored tensors of which the name, or that of a view, matches.
std::set<TensorId> stored_matching(const Graph& graph, const std::set<TensorId>& stored,
                                   const std::vector<std::string>& names) {
  std::set<TensorId> chosen;
  Patterns patterns(names);
  for (std::size_t t = 0; t < graph.tensors().size(); ++t) {
    const TensorId root = storage_root(graph, TensorId(t));
    if (stored.count(root) > 0 && patterns.match(graph.tensors()[t].name))
      chosen.insert(root);
  }
  ProblemList problems;
  if (names != std::vector<std::string>{"*"})
    patterns.report(graph, "no stored tensor matches the pattern '{}' of 'offload'", problems);
  problems.throw_if_any();
  return chosen;
}

class Offloading {
public:
  Offloading(const Graph& graph, std::set<TensorId> chosen)
      : graph_(graph), chosen_(std::move(chosen)), backward_(in_backward_part(graph)) {}

  /// In `stored` copies in the host take the places of their tensors.
  Graph run(std::vector<TensorId>& stored) {
    find_places();
    RunSequence sequence(graph_);
    std::map<TensorId, TensorId> in_host;
    const auto move_out = [&](std::size_t before, Phase phase) {
      for (const auto& [id, place] : places_) {
        if (place.out == before)
          in_host.emplace(id, sequence.copy(id, ops::Offload, ".offloaded", phase));
      }
    };
    Phase phase = Phase::forward; // of the operators so far
    move_out(0, phase);
    for (std::size_t i = 0; i < graph_.operators().size(); ++i) {
      for (const auto& [id, place] : places_) {
        if (place.in != i)
          continue;
        sequence.read_instead(id, in_host.at(id));
        sequence.read_instead(id, sequence.copy(id, ops::Fetch, ".fetched", Phase::backward));
      }
      sequence.run(OpId(i));
      if (graph_.op(OpId(i)).phase != Phase::recompute)
        phase = graph_.op(OpId(i)).phase;
      move_out(i + 1, phase);
    }
    for (TensorId& id : stored) {
      if (const auto moved = in_host.find(id); moved != in_host.end())
        id = moved->second;
    }
    std::sort(stored.begin(), stored.end());
    return sequence.release();
  }

private:
  /// The operators before which a tensor leaves and comes back.
  struct OffloadWindow {
    std::size_t out = 0;
    std::size_t in = kNever;
    bool read = false; ///< the backward part reads it, first at `in`
  };
  static constexpr std::size_t kNever = static_cast<std::size_t>(-1);

  /// Finds where each tensor leaves and comes back. One that no backward operator reads comes back
  /// before the first gradient of an operator that made or read it; without such a gradient it
  /// stays.
  void find_places() {
    for (const TensorId id : chosen_)
      places_[id] = {};
    std::vector<std::set<TensorId>> touched(graph_.operators().size());
    for (std::size_t i = 0; i < graph_.operators().size(); ++i) {
      const Operator& op = graph_.op(OpId(i));
      for (const auto* list : {&op.inputs, &op.outputs}) {
        for (const TensorId id : present(*list)) {
          if (const TensorId root = storage_root(graph_, id); places_.count(root) > 0)
            touched[i].insert(root);
        }
      }
      for (const TensorId id : touched[i])
        touch(places_[id], i);
      if (op.phase != Phase::backward || !op.forward_op)
        continue;
      for (const TensorId id : touched[op.forward_op->index()]) {
        OffloadWindow& place = places_[id];
        place.in = std::min(place.in, i);
      }
    }
    std::erase_if(places_, [](const auto& entry) { return entry.second.in == kNever; });
  }

  void touch(OffloadWindow& place, std::size_t op) const {
    if (!backward_[op]) {
      place.out = op + 1;
    } else if (!place.read) {
      place.read = true;
      place.in = op;
    }
  }

  const Graph& graph_;
  std::set<TensorId> chosen_; ///< storages
  std::vector<bool> backward_;
  std::map<TensorId, OffloadWindow> places_;
};

} // namespace

Graph offload(const Graph& graph, const std::vector<std::string>& patterns,
              const std::vector<TensorId>& losses, std::vector<TensorId>& stored) {
  const std::vector<TensorId> read = tensors_read_by_backward(graph);
  std::set<TensorId> all(read.begin(), read.end());
  all.insert(stored.begin(), stored.end());
  const std::vector<bool> once = made_once(graph);
  std::erase_if(all, [&](TensorId id) { return stays(graph, once, id); });
  for (const TensorId id : losses)
    all.erase(storage_root(graph, id));
  std::set<TensorId> chosen = stored_matching(graph, all, patterns);
  return chosen.empty() ? graph : Offloading(graph, std::move(chosen)).run(stored);
}

} // namespace monet

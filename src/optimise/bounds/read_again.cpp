// Lower bounds on parameters read twice and on live memory at a moment of a step; step_bounds()
// uses them.
#include "optimise/bounds/read_again.hpp"

#include "schedule/shared/bounds.hpp"
#include "workload/shared/operators.hpp"

#include <algorithm>

namespace monet {

namespace {

double elements_read(const Graph& graph, OpId op, const Access& access) {
  const std::vector<Interval> all = full_tile(graph.op(op).nest);
  return static_cast<double>(touched_elements(access, all, graph.tensor(access.tensor).shape));
}

TensorId root_of(const Graph& graph, TensorId root) {
  for (std::size_t hops = 0; graph.tensor(root).alias_of && hops < graph.tensors().size(); ++hops)
    root = *graph.tensor(root).alias_of;
  return root;
}

bool lasts(const Tensor& tensor) {
  return tensor.kind == TensorKind::parameter || tensor.kind == TensorKind::buffer ||
         tensor.kind == TensorKind::optimizer_state;
}

} // namespace

ReadAgain::ReadAgain(const Graph& graph, double room) : graph_(graph), room_(room) {
  for (std::size_t o = 0; o < graph.operators().size(); ++o) {
    for (const auto& output : graph.operators()[o].outputs) {
      const auto root = output ? graph.tensor(*output).alias_of : std::nullopt;
      if (!root || graph.tensor(*root).producer)
        continue;
      Overwritten tensor;
      tensor.elements = static_cast<double>(element_count(graph.tensor(*root)));
      tensor.width = static_cast<double>(bits_of(graph.tensor(*root).type));
      bool updated = false; // the update reads all of it as well
      for (const OpId op : graph.tensor(*root).consumers) {
        for (const Access& access : graph.op(op).nest.operands) {
          if (access.mode != AccessMode::read || access.tensor != *root || op > OpId(o))
            continue;
          const bool all = elements_read(graph, op, access) >= tensor.elements;
          updated = updated || (all && op == OpId(o));
          if (all && op != OpId(o))
            tensor.before.push_back({op, &access});
        }
      }
      if (updated && tensor.elements * tensor.width > room && !tensor.before.empty())
        tensors_.push_back(std::move(tensor));
    }
  }
}

double ReadAgain::bits(const StepCone* after) const {
  double sum = 0;
  for (const Overwritten& tensor : tensors_) {
    const bool twice = std::ranges::any_of(tensor.before, [&](const Reader& reader) {
      return after == nullptr || certain_volume(certain_reads(graph_, *after, reader.op,
                                                              *reader.access)) >= tensor.elements;
    });
    sum += twice ? tensor.elements * tensor.width - room_ : 0;
  }
  return sum;
}

std::int64_t min_live(const Graph& graph, OpId op, const StepCone& before, const StepCone& after,
                      bool all_kept) {
  const std::size_t tensors = graph.tensors().size();
  std::vector<bool> wanted(tensors, false); // per root tensor: used at that moment or later
  const auto kept = [&](TensorId root) { return all_kept || !graph.tensor(root).producer; };
  for (const TensorId output : graph.outputs)
    if (const TensorId root = root_of(graph, output); kept(root))
      wanted[root.index()] = true;
  for (std::size_t t = 0; t < tensors; ++t) {
    const Tensor& tensor = graph.tensors()[t];
    const bool later = kept(root_of(graph, TensorId(t)));
    bool used = lasts(tensor) && !tensor.alias_of;
    for (const OpId reader : tensor.consumers)
      used = used || reader == op || (later && !after.loops[reader.index()].empty());
    if (used)
      wanted[root_of(graph, TensorId(t)).index()] = true;
  }
  std::int64_t live = 0;
  for (std::size_t t = 0; t < tensors; ++t) {
    const Tensor& tensor = graph.tensors()[t];
    if (tensor.alias_of || lies_in_host(graph, TensorId(t)))
      continue;
    const bool here = tensor.producer == op;
    const bool begun = !tensor.producer || here || !before.loops[tensor.producer->index()].empty();
    if (begun && (here || wanted[t]))
      live += bytes_of(size_of(tensor));
  }
  return live;
}

} // namespace monet

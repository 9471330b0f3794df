#include "optimise/bounds/least_live.hpp"

#include "monet/workload/operators.hpp"

namespace monet {

namespace {

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

std::int64_t least_live(const Graph& graph, OpId op, const StepCone& before, const StepCone& after,
                        bool all_kept) {
  const std::size_t tensors = graph.tensors().size();
  std::vector<bool> wanted(tensors, false); // per root: at that moment or later
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

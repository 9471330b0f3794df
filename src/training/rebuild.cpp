#include "training/rebuild.hpp"

#include <fmt/format.h>

#include <utility>

namespace monet {

Graph without_operators(const Graph& graph) {
  Graph made;
  made.name = graph.name;
  made.origin = graph.origin;
  made.inputs = graph.inputs;
  made.outputs = graph.outputs;
  for (Tensor tensor : graph.tensors()) {
    tensor.producer.reset();
    tensor.consumers.clear();
    made.add_tensor(std::move(tensor));
  }
  return made;
}

std::string unique_name(std::unordered_set<std::string>& taken, const std::string& name) {
  std::string candidate = name;
  for (int i = 2; !taken.insert(candidate).second; ++i)
    candidate = fmt::format("{}.{}", name, i);
  return candidate;
}

} // namespace monet

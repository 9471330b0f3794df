// A model is read, changed in one place or a few, and written again.
#include "structured/mutator.hpp"
#include "structured/onnx_parts.hpp"

#include <algorithm>
#include <climits>

namespace monet::fuzz {

namespace {

bool parse(std::string_view bytes, onnx::ModelProto& model) {
  return bytes.size() < INT_MAX &&
         model.ParseFromArray(bytes.data(), static_cast<int>(bytes.size())) && model.has_graph();
}

/// The model's graph, now and then one inside.
onnx::GraphProto& some_graph(onnx::GraphProto& graph, Random& random) {
  if (!random.one_in(4))
    return graph;
  std::vector<onnx::GraphProto*> inner;
  for (onnx::NodeProto& node : *graph.mutable_node()) {
    for (onnx::AttributeProto& attribute : *node.mutable_attribute()) {
      if (attribute.has_g())
        inner.push_back(attribute.mutable_g());
    }
  }
  return inner.empty() ? graph : some_graph(*random.pick(inner), random);
}

void mutate_once(onnx::ModelProto& model, Random& random) {
  const std::vector<Mutation>* kinds[]{&tensor_mutations(), &attribute_mutations(),
                                       &node_mutations()};
  constexpr int kTries = 8; // not every graph has what every mutation changes
  for (int i = 0; i < kTries; ++i) {
    onnx::GraphProto& graph = some_graph(*model.mutable_graph(), random);
    if (random.pick(*random.pick(kinds))({model, graph, random}))
      return;
  }
}

} // namespace

std::vector<std::string> tensor_names(const onnx::GraphProto& graph) {
  std::vector<std::string> names;
  for (const auto& input : graph.input())
    names.push_back(input.name());
  for (const auto& tensor : graph.initializer())
    names.push_back(tensor.name());
  for (const auto& node : graph.node())
    names.insert(names.end(), node.output().begin(), node.output().end());
  return names;
}

std::string some_tensor(const Place& place) {
  const std::vector<std::string> names =
      tensor_names(place.random.one_in(8) ? place.model.graph() : place.graph);
  return names.empty() || place.random.one_in(40) ? "nowhere" : place.random.pick(names);
}

std::optional<std::string> mutate_onnx(std::string_view bytes, Random& random) {
  onnx::ModelProto model;
  if (!parse(bytes, model))
    return std::nullopt;
  do {
    mutate_once(model, random);
  } while (random.one_in(3));
  return model.SerializeAsString();
}

std::optional<std::string> cross_onnx(std::string_view a, std::string_view b, Random& random) {
  onnx::ModelProto model, other;
  if (!parse(a, model) || !parse(b, other))
    return std::nullopt;
  onnx::GraphProto& graph = some_graph(*model.mutable_graph(), random);
  onnx::GraphProto& from = some_graph(*other.mutable_graph(), random);
  if (from.node_size() == 0)
    return std::nullopt;
  const int first = random.index(from.node_size());
  const int last = std::min(from.node_size(), first + 1 + random.index(4));
  for (int i = first; i < last; ++i) {
    onnx::NodeProto& node = *graph.add_node();
    node = from.node(i);
    for (const auto& tensor : from.initializer()) {
      if (std::find(node.input().begin(), node.input().end(), tensor.name()) != node.input().end())
        *graph.add_initializer() = tensor;
    }
    if (node.input_size() > 0 && random.one_in(2)) {
      node.set_input(0, some_tensor({model, graph, random}));
    }
    if (i + 1 == last && node.output_size() > 0)
      graph.add_output()->set_name(node.output(0));
  }
  return model.SerializeAsString();
}

} // namespace monet::fuzz

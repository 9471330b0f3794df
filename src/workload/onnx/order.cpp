// Passes that inline functions, name and sort nodes, and drop dead nodes, without ONNX types.
#include "workload/onnx/model.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <queue>
#include <unordered_set>

namespace monet::onnx_file {

namespace {

constexpr std::size_t kMaxNodes = 1'000'000;
constexpr int kMaxCallDepth = 32;

struct Call {
  Node node;
  int depth = 0;
};

/// Nodes of a function with the caller's tensors and attributes substituted.
std::vector<Node> expand_call(const Model& model, const Node& caller, const Function& function,
                              std::size_t serial) {
  if (caller.inputs.size() > function.inputs.size() ||
      caller.outputs.size() > function.outputs.size()) {
    throw InputError(at_node(model, caller), "more operands than the function has");
  }
  std::unordered_map<std::string, std::string> names{{"", ""}};
  for (std::size_t i = 0; i < function.inputs.size(); ++i) {
    names[function.inputs[i]] = i < caller.inputs.size() ? caller.inputs[i] : "";
  }
  for (std::size_t i = 0; i < caller.outputs.size(); ++i) {
    if (!caller.outputs[i].empty())
      names[function.outputs[i]] = caller.outputs[i];
  }
  const std::string prefix = fmt::format("{}/{}", caller.name, serial);
  const auto rename = [&](std::string& name) {
    name = names.try_emplace(name, fmt::format("{}/{}", prefix, name)).first->second;
  };
  std::vector<Node> nodes = function.nodes;
  for (Node& node : nodes) {
    node.name = fmt::format("{}/{}", caller.name, node.name);
    for (std::string& input : node.inputs)
      rename(input);
    for (std::string& output : node.outputs)
      rename(output);
    for (const auto& [attribute, parameter] : node.attribute_references) {
      const auto given = caller.attributes.all().find(parameter);
      if (given != caller.attributes.all().end())
        node.attributes.set(attribute, given->second);
      const auto tensor = caller.tensors.find(parameter);
      if (tensor != caller.tensors.end())
        node.tensors[attribute] = tensor->second;
    }
    node.attribute_references.clear();
  }
  return nodes;
}

using Producers = std::unordered_map<std::string_view, std::size_t>;

/// Producer of each value; reports values with several producers.
Producers find_producers(const Model& model, ProblemList& problems) {
  std::unordered_set<std::string_view> given;
  for (const Declared& input : model.inputs) {
    if (!given.insert(input.name).second) {
      problems.add(at_tensor(model, input.name), "two graph inputs have this name");
    }
  }
  for (const std::string& name : model.initializer_order)
    given.insert(name);
  Producers producers;
  for (std::size_t i = 0; i < model.nodes.size(); ++i) {
    for (const std::string& output : model.nodes[i].outputs) {
      if (output.empty())
        continue;
      if (given.count(output) != 0 || !producers.emplace(output, i).second) {
        problems.add(at_node(model, model.nodes[i]),
                     fmt::format("value '{}' is computed twice", output));
      }
    }
  }
  const auto known = [&](const std::string& name) {
    return name.empty() || given.count(name) != 0 || producers.count(name) != 0;
  };
  for (const Node& node : model.nodes) {
    for (const std::string& input : node.inputs) {
      if (!known(input)) {
        problems.add(at_node(model, node), fmt::format("no node computes input '{}'", input));
      }
    }
  }
  for (const Declared& output : model.outputs) {
    if (output.name.empty() || !known(output.name)) {
      problems.add(at_tensor(model, output.name), "no node computes this graph output");
    }
  }
  return producers;
}

/// Kahn's algorithm; among ready nodes it takes the first one in the file.
std::vector<std::size_t> topological_order(const Model& model, const Producers& producers) {
  const std::size_t count = model.nodes.size();
  std::vector<std::vector<std::size_t>> readers(count);
  std::vector<std::size_t> waits(count, 0);
  for (std::size_t i = 0; i < count; ++i) {
    for (const std::string& input : model.nodes[i].inputs) {
      const auto producer = producers.find(input);
      if (producer == producers.end())
        continue;
      readers[producer->second].push_back(i);
      ++waits[i];
    }
  }
  std::priority_queue<std::size_t, std::vector<std::size_t>, std::greater<>> ready;
  for (std::size_t i = 0; i < count; ++i) {
    if (waits[i] == 0)
      ready.push(i);
  }
  std::vector<std::size_t> order;
  while (!ready.empty()) {
    const std::size_t next = ready.top();
    ready.pop();
    order.push_back(next);
    for (const std::size_t reader : readers[next]) {
      if (--waits[reader] == 0)
        ready.push(reader);
    }
  }
  return order;
}

} // namespace

bool inline_functions(NetworkDraft& draft) {
  Model& model = draft.model;
  if (model.functions.empty())
    return false;
  std::vector<Call> stack; // the next node is at the back
  for (auto node = model.nodes.rbegin(); node != model.nodes.rend(); ++node) {
    stack.push_back({std::move(*node), 0});
  }
  model.nodes.clear();
  std::size_t serial = 0;
  while (!stack.empty()) {
    Call call = std::move(stack.back());
    stack.pop_back();
    const auto function = model.functions.find({call.node.domain, call.node.op_type.str()});
    if (function == model.functions.end()) {
      model.nodes.push_back(std::move(call.node));
      continue;
    }
    if (call.depth >= kMaxCallDepth) {
      throw InputError(at_node(model, call.node), "functions call each other too deeply");
    }
    std::vector<Node> nodes = expand_call(model, call.node, function->second, serial++);
    if (model.nodes.size() + stack.size() + nodes.size() > kMaxNodes) {
      throw InputError(at_node(model, call.node), "functions expand to more than a million nodes");
    }
    for (auto node = nodes.rbegin(); node != nodes.rend(); ++node) {
      stack.push_back({std::move(*node), call.depth + 1});
    }
  }
  return true;
}

void name_nodes(NetworkDraft& draft) {
  Model& model = draft.model;
  std::unordered_set<std::string> taken;
  for (std::size_t i = 0; i < model.nodes.size(); ++i) {
    Node& node = model.nodes[i];
    if (!node.name.empty() && taken.insert(node.name).second)
      continue;
    const auto output =
        std::ranges::find_if(node.outputs, [](const std::string& name) { return !name.empty(); });
    std::string name = output != node.outputs.end() ? *output : fmt::format("node_{}", i);
    for (int n = 2; !taken.insert(name).second; ++n)
      name = fmt::format("{}_{}", node.name, n);
    node.name = name;
  }
}

void sort_nodes(NetworkDraft& draft) {
  Model& model = draft.model;
  ProblemList problems;
  const Producers producers = find_producers(model, problems);
  problems.throw_if_any();
  const std::vector<std::size_t> order = topological_order(model, producers);
  if (order.size() < model.nodes.size()) {
    std::vector<bool> done(model.nodes.size(), false);
    for (const std::size_t i : order)
      done[i] = true;
    const auto stuck = std::ranges::find(done, false) - done.begin();
    throw InputError(at_node(model, model.nodes[static_cast<std::size_t>(stuck)]),
                     "the node depends on its own output (a cycle)");
  }
  std::vector<Node> sorted;
  for (const std::size_t i : order)
    sorted.push_back(std::move(model.nodes[i]));
  model.nodes = std::move(sorted);
}

void drop_dead_nodes(NetworkDraft& draft) {
  std::vector<Node>& nodes = draft.model.nodes;
  std::unordered_set<std::string_view> needed;
  for (const Declared& output : draft.model.outputs)
    needed.insert(output.name);
  std::vector<bool> alive(nodes.size());
  for (std::size_t i = nodes.size(); i-- > 0;) {
    alive[i] = std::ranges::any_of(nodes[i].outputs, [&](const std::string& name) {
      return !name.empty() && needed.count(name) != 0;
    });
    if (alive[i])
      needed.insert(nodes[i].inputs.begin(), nodes[i].inputs.end());
  }
  auto is_alive = alive.begin();
  std::erase_if(nodes, [&](const Node&) { return !*is_alive++; });
}

} // namespace monet::onnx_file

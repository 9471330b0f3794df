// Unrolls If, Loop and Scan nodes while onnx_reader.cpp visits the nodes.
#include "workload/onnx/control.hpp"

#include "workload/shared/op_types.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <limits>
#include <utility>

namespace monet::onnx_file {

namespace {

/// Maximum number of nodes in all copies; a larger graph would not be usable.
constexpr std::size_t kMaxUnrolledNodes = 100'000;
/// Maximum size of their names and attributes, which a file can make long.
constexpr std::size_t kMaxUnrolledBytes = std::size_t{256} << 20;
/// Bytes per name in addition to its characters.
constexpr std::size_t kBytesOfName = 32;

bool is_constant(const Node& node) {
  return node.domain.empty() && node.op_type == ops::Constant && node.inputs.empty() &&
         node.outputs.size() == 1;
}

std::size_t bytes_of(const AttributeValue& value) {
  const auto* text = std::get_if<std::string>(&value);
  const auto* texts = std::get_if<std::vector<std::string>>(&value);
  const auto* integers = std::get_if<Integers>(&value);
  const auto* reals = std::get_if<std::vector<double>>(&value);
  std::size_t bytes = kBytesOfName;
  bytes += text != nullptr ? text->size() : 0;
  bytes += integers != nullptr ? integers->size() * sizeof(std::int64_t) : 0;
  bytes += reals != nullptr ? reals->size() * sizeof(double) : 0;
  for (std::size_t i = 0; texts != nullptr && i < texts->size(); ++i)
    bytes += (*texts)[i].size() + kBytesOfName;
  return bytes;
}

/// Bytes of one copy of a node, without the prefix of its names.
std::size_t bytes_of(const Node& node) {
  std::size_t bytes = node.name.size() + node.op_type.name().size() + kBytesOfName;
  for (const std::string& name : node.inputs)
    bytes += name.size() + kBytesOfName;
  for (const std::string& name : node.outputs)
    bytes += name.size() + kBytesOfName;
  for (const auto& [name, value] : node.attributes.all())
    bytes += name.size() + bytes_of(value);
  for (const auto& [name, value] : node.tensors) {
    bytes += name.size() + kBytesOfName;
    if (value.values)
      bytes +=
          std::visit([](const auto& list) { return list.size() * sizeof(list[0]); }, *value.values);
  }
  return bytes;
}

} // namespace

/// Graph within a node, and properties shared by all its copies.
struct ControlFlow::Body {
  const Node& node;
  const InnerGraph& graph;
  Renaming captured;
  std::size_t names = 0; ///< names in a copy
  std::size_t bytes = 0; ///< bytes of a copy, without name prefixes
};

ControlFlow::Body ControlFlow::body_of(const Node& node, std::size_t graph) const {
  Body body{node, node.inner->graphs[graph], {}};
  const InnerGraphs& inner = *node.inner;
  for (std::size_t i = 0; i < inner.captured.size(); ++i)
    body.captured[inner.captured[i]] = node.inputs.at(inner.own_inputs + i);
  body.names = body.graph.inputs.size() + body.graph.outputs.size();
  for (const Node& each : body.graph.nodes) {
    body.names += 1 + each.inputs.size() + each.outputs.size();
    body.bytes += is_constant(each) ? 0 : bytes_of(each);
  }
  return body;
}

std::optional<Unrolled> ControlFlow::run(const Node& node) {
  if (taken_.empty()) {
    for (const Node& each : model_.nodes) {
      taken_.insert(each.name);
      taken_.insert(each.outputs.begin(), each.outputs.end());
    }
    for (const Declared& input : model_.inputs)
      taken_.insert(input.name);
    taken_.insert(model_.initializer_order.begin(), model_.initializer_order.end());
  }
  if (node.op_type == ops::If)
    return run_if(node);
  return node.op_type == ops::Loop ? run_loop(node) : run_scan(node);
}

// --- copies ---

void ControlFlow::charge(const Node& node, std::size_t nodes, std::size_t bytes) {
  nodes_ += nodes;
  bytes_ += std::min(bytes, kMaxUnrolledBytes);
  if (nodes_ > kMaxUnrolledNodes)
    throw InputError(
        at_node(model_, node),
        fmt::format("unrolled, the network has more than {} nodes", kMaxUnrolledNodes));
  if (bytes_ > kMaxUnrolledBytes)
    throw InputError(at_node(model_, node),
                     "unrolled, the network has more than 256 MiB of names and attributes");
}

std::string ControlFlow::unused(std::string name) {
  std::string tried = name;
  for (int n = 2; values_.count(tried) != 0 || !taken_.insert(tried).second; ++n)
    tried = fmt::format("{}_{}", name, n);
  return tried;
}

std::string ControlFlow::constant(const std::string& name, Value value) {
  std::string full = unused(name);
  value.is_constant = true;
  values_[full] = std::move(value);
  return full;
}

const ControlFlow::Renaming& ControlFlow::constants_of(const Body& body) {
  const auto [at, added] = constants_.try_emplace(&body.graph);
  if (!added)
    return at->second;
  Renaming& names = at->second;
  for (const auto& [name, value] : body.graph.initializers)
    names[name] = constant(fmt::format("{}/{}", body.node.name, name), value);
  for (const Node& node : body.graph.nodes) {
    if (!is_constant(node))
      continue;
    charge(body.node, 1, bytes_of(node));
    Node made = node;
    made.name = unused(fmt::format("{}/{}", body.node.name, node.name));
    made.outputs[0] = unused(fmt::format("{}/{}", body.node.name, node.outputs[0]));
    names[node.outputs[0]] = made.outputs[0];
    visit_(made);
  }
  return names;
}

std::optional<ControlFlow::Names> ControlFlow::copy(const Body& body, const Names& inputs,
                                                    const std::string& label) {
  const std::string prefix = fmt::format("{}{}", body.node.name, label);
  const Renaming& constants = constants_of(body);
  charge(body.node, 1 + body.graph.nodes.size(),
         body.bytes + body.names * (prefix.size() + kBytesOfName));
  Renaming own;
  for (std::size_t i = 0; i < body.graph.inputs.size(); ++i)
    own[body.graph.inputs[i]] = inputs.at(i);
  const auto renamed = [&](const std::string& name) {
    for (const Renaming* names : {&std::as_const(own), &constants, &body.captured}) {
      if (const auto found = names->find(name); found != names->end())
        return found->second;
    }
    return std::string(); // an input that is left out
  };
  bool known = true;
  for (std::size_t i = 0; i < body.graph.nodes.size(); ++i) {
    const Node& node = body.graph.nodes[i];
    if (is_constant(node))
      continue;
    Node made = node;
    made.name = unused(fmt::format("{}/{}:{}", prefix, i, node.name));
    for (std::string& name : made.inputs)
      name = renamed(name);
    for (std::string& name : made.outputs) {
      if (!name.empty())
        name = own[name] = unused(fmt::format("{}/{}", prefix, name));
    }
    known = visit_(made) && known;
  }
  if (!known)
    return std::nullopt;
  Names outputs;
  for (const std::string& name : body.graph.outputs)
    outputs.push_back(second_names_.of(renamed(name)));
  return outputs;
}

std::optional<std::int64_t> ControlFlow::number(const std::string& name) const {
  const auto value = values_.find(name);
  if (value == values_.end() || !value->second.is_constant)
    return std::nullopt;
  const auto* numbers = integers_of(value->second.values);
  return numbers != nullptr && numbers->size() == 1 ? std::optional(numbers->front())
                                                    : std::nullopt;
}

/// Node whose single output is named after it.
Node ControlFlow::part(const Node& node, OpType op_type, const std::string& label, Names inputs,
                       Attributes attributes) {
  charge(node, 1, node.name.size() + label.size());
  const std::string name = unused(fmt::format("{}/{}", node.name, label));
  return {.name = name,
          .op_type = std::string(op_type),
          .opset = 17,
          .inputs = std::move(inputs),
          .outputs = {name},
          .attributes = std::move(attributes)};
}

// --- If ---

std::optional<Unrolled> ControlFlow::run_if(const Node& node) {
  const InnerGraphs& inner = *node.inner;
  if (inner.own_inputs != 1)
    throw InputError(at_node(model_, node), "one condition is expected");
  const auto condition = number(node.inputs[0]);
  if (!condition)
    return Unrolled{{}, "which branch runs depends on data"};
  const Body body = body_of(node, *condition != 0 ? 1 : 0);
  if (!body.graph.inputs.empty() || body.graph.outputs.size() != node.outputs.size())
    throw InputError(at_node(model_, node),
                     fmt::format("a branch of {} inputs and {} outputs does not fit {} outputs",
                                 body.graph.inputs.size(), body.graph.outputs.size(),
                                 node.outputs.size()));
  auto results = copy(body, {}, "");
  return results ? std::optional(Unrolled{std::move(*results), {}}) : std::nullopt;
}

// --- Loop and Scan ---

std::optional<Unrolled> ControlFlow::run_loop(const Node& node) {
  const Body body = body_of(node, 0);
  const std::size_t own = std::max<std::size_t>(node.inner->own_inputs, 2);
  const std::size_t states = own - 2;
  const auto given = [&](std::size_t i) {
    return i < node.inner->own_inputs ? node.inputs[i] : std::string();
  };
  if (body.graph.inputs.size() != states + 2 || body.graph.outputs.size() < states + 1 ||
      node.outputs.size() + 1 > body.graph.outputs.size())
    throw InputError(at_node(model_, node, "attribute 'body'"),
                     fmt::format("a body of {} inputs and {} outputs does not fit a loop with {} "
                                 "carried values and {} outputs",
                                 body.graph.inputs.size(), body.graph.outputs.size(), states,
                                 node.outputs.size()));
  const auto turns = given(0).empty() ? std::numeric_limits<std::int64_t>::max() : number(given(0));
  auto goes_on = given(1).empty() ? 1 : number(given(1));
  if (!turns || !goes_on)
    return Unrolled{{}, "the number of iterations depends on data"};
  Names fed{
      "", constant(node.name + "/goes_on", {.type = ElementType::boolean, .values = Integers{1}})};
  for (std::size_t i = 0; i < states; ++i)
    fed.push_back(given(2 + i));
  std::vector<Names> scanned(body.graph.outputs.size() - 1 - states);
  for (std::int64_t turn = 0; turn < *turns && *goes_on != 0; ++turn) {
    fed[0] = constant(fmt::format("{}/{}/turn", node.name, turn),
                      {.type = ElementType::int64, .values = Integers{turn}});
    const auto made = copy(body, fed, fmt::format("/{}", turn));
    if (!made)
      return std::nullopt;
    goes_on = number((*made)[0]);
    if (!goes_on)
      return Unrolled{{},
                      fmt::format("whether iteration {} is the last one depends on data", turn)};
    std::copy_n(made->begin() + 1, states, fed.begin() + 2);
    for (std::size_t i = 0; i < scanned.size(); ++i)
      scanned[i].push_back((*made)[1 + states + i]);
  }
  return finish(node, Names(fed.begin() + 2, fed.end()), scanned);
}

std::optional<Unrolled> ControlFlow::run_scan(const Node& node) {
  const Body body = body_of(node, 0);
  const auto own = static_cast<std::int64_t>(node.inner->own_inputs);
  const std::int64_t count = node.attributes.integer("num_scan_inputs", 0);
  if (node.opset < 9)
    throw InputError(at_node(model_, node), "Scan of opset 8 is not supported");
  if (count < 1 || count > own || static_cast<std::int64_t>(body.graph.inputs.size()) != own ||
      static_cast<std::int64_t>(body.graph.outputs.size()) < own - count ||
      node.outputs.size() > body.graph.outputs.size())
    throw InputError(at_node(model_, node, "attribute 'body'"),
                     fmt::format("a body of {} inputs and {} outputs does not fit a scan of {} of "
                                 "{} inputs with {} outputs",
                                 body.graph.inputs.size(), body.graph.outputs.size(), count, own,
                                 node.outputs.size()));
  const auto states = static_cast<std::size_t>(own - count);
  const std::vector<Names> slices = take_apart(node, states, count);
  std::vector<Names> scanned(body.graph.outputs.size() - states);
  const auto first = node.inputs.begin();
  Names fed(first, first + static_cast<std::ptrdiff_t>(states));
  for (std::size_t turn = 0; turn < slices[0].size(); ++turn) {
    fed.resize(states);
    for (const Names& list : slices)
      fed.push_back(list[turn]);
    const auto made = copy(body, fed, fmt::format("/{}", turn));
    if (!made)
      return std::nullopt;
    std::copy_n(made->begin(), states, fed.begin());
    for (std::size_t i = 0; i < scanned.size(); ++i)
      scanned[i].push_back((*made)[states + i]);
  }
  fed.resize(states);
  return finish(node, std::move(fed), scanned);
}

/// Slices of every scanned input, in iteration order.
std::vector<ControlFlow::Names> ControlFlow::take_apart(const Node& node, std::size_t states,
                                                        std::int64_t count) {
  const auto axes = node.attributes.integers("scan_input_axes");
  const auto directions = node.attributes.integers("scan_input_directions");
  std::vector<Names> all;
  for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i) {
    const Value* input = input_value(node, states + i, values_);
    const auto rank = static_cast<std::int64_t>(input == nullptr ? 0 : input->shape.size());
    std::int64_t axis = i < axes.size() ? axes[i] : 0;
    axis += axis < 0 ? rank : 0;
    if (axis < 0 || axis >= rank)
      throw InputError(at_node(model_, node, "attribute 'scan_input_axes'"),
                       fmt::format("scanned input {} has no such axis", i));
    const std::int64_t length = input->shape[static_cast<std::size_t>(axis)];
    if (i > 0 && length != static_cast<std::int64_t>(all[0].size()))
      throw InputError(at_node(model_, node), "the scanned inputs are not equally long");
    const auto parts = static_cast<std::size_t>(length);
    charge(node, parts, parts * (node.name.size() + kBytesOfName));
    const std::string sizes =
        constant(fmt::format("{}/in{}/sizes", node.name, i), integer_constant(Integers(parts, 1)));
    const std::string axis_name =
        constant(fmt::format("{}/in{}/axis", node.name, i), integer_constant({axis}));
    Node split = part(node, ops::Split, fmt::format("in{}", i), {node.inputs[states + i], sizes},
                      {{"axis", axis}});
    split.outputs.clear();
    for (std::size_t k = 0; k < parts; ++k)
      split.outputs.push_back(unused(fmt::format("{}/in{}/{}", node.name, i, k)));
    Names& slices = all.emplace_back();
    if (parts > 0)
      visit_(split);
    for (std::size_t k = 0; k < parts; ++k) {
      Node squeeze = part(node, ops::Squeeze, fmt::format("in{}/{}/squeezed", i, k),
                          {split.outputs[k], axis_name});
      visit_(squeeze);
      slices.push_back(squeeze.outputs[0]);
    }
    if (i < directions.size() && directions[i] != 0)
      std::reverse(slices.begin(), slices.end());
  }
  return all;
}

std::optional<Unrolled> ControlFlow::finish(const Node& node, Names states,
                                            const std::vector<Names>& scanned) {
  Unrolled made;
  for (std::size_t i = 0; i < node.outputs.size(); ++i) {
    const bool is_state = i < states.size();
    made.results.push_back(is_state ? states[i] : "");
    if (is_state || node.outputs[i].empty())
      continue;
    if (!put_together(node, i, i - states.size(), scanned[i - states.size()]))
      return std::nullopt;
  }
  return made;
}

/// Joins the slices of a scanned output along a new axis.
bool ControlFlow::put_together(const Node& node, std::size_t output, std::size_t scan,
                               const Names& parts) {
  if (parts.empty())
    throw InputError(
        at_node(model_, node),
        fmt::format("output '{}' of a loop without iterations has no shape", node.outputs[output]));
  const auto axes = node.attributes.integers("scan_output_axes");
  const auto directions = node.attributes.integers("scan_output_directions");
  const std::int64_t axis = scan < axes.size() ? axes[scan] : 0;
  const std::string axis_name =
      constant(fmt::format("{}/out{}/axis", node.name, scan), integer_constant({axis}));
  Names rows;
  for (std::size_t k = 0; k < parts.size(); ++k) {
    Node row = part(node, ops::Unsqueeze, fmt::format("out{}/{}", scan, k), {parts[k], axis_name});
    if (parts.size() == 1)
      row.outputs = {node.outputs[output]};
    if (!visit_(row))
      return false;
    rows.push_back(row.outputs[0]);
  }
  if (scan < directions.size() && directions[scan] != 0)
    std::reverse(rows.begin(), rows.end());
  if (rows.size() == 1)
    return true;
  Node whole =
      part(node, ops::Concat, fmt::format("out{}", scan), std::move(rows), {{"axis", axis}});
  whole.outputs = {node.outputs[output]};
  return visit_(whole);
}

} // namespace monet::onnx_file

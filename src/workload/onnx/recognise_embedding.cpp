// Recognises embedding bags. Exporters write a loop that reads the table bag by bag, which would
// yield a gradient of the table's size for every bag.
#include "workload/onnx/recognise.hpp"
#include "workload/shared/operators.hpp"

#include <array>

namespace monet::onnx_file {

namespace {

using Shape = Integers;

constexpr std::array<OpType, 3> kModes{ops::ReduceSum, ops::ReduceMean, ops::ReduceMax};

/// Bag of an embedding: the range [from, to) of a vector of indices, and of a vector of weights if
/// present.
struct Bag {
  OpType op_type; ///< reduction of the rows
  std::string table;
  std::string indices;
  std::string weights;
  std::int64_t from = 0;
  std::int64_t to = 0;
};

std::optional<Shape> integers(const Chains& chains, const Node& node, std::size_t input) {
  if (input >= node.inputs.size() || node.inputs[input].empty())
    return std::nullopt;
  const Value& value = chains.value(node.inputs[input]);
  const auto* list =
      value.values && value.is_constant ? std::get_if<Shape>(&*value.values) : nullptr;
  return list == nullptr ? std::nullopt : std::optional(*list);
}

/// Producer of `name` if it has that type and only axis `axis`, as an input or an attribute.
const Node* made_along(const Chains& chains, const std::string& name, OpType op_type,
                       std::int64_t axis, Chains::Members& members) {
  const Node* node = chains.made_by(name, op_type, members);
  if (node == nullptr)
    return nullptr;
  const auto input = integers(chains, *node, 1);
  const Shape axes = input ? *input : node->attributes.integers("axes");
  return axes == Shape{axis} ? node : nullptr;
}

/// Vector of which `name` is a part; sets the bounds of the part in `bag`.
std::optional<std::string> part_of(const Chains& chains, const std::string& name, Bag& bag,
                                   Chains::Members& members) {
  const Node* slice = chains.made_by(name, ops::Slice, members);
  if (slice == nullptr || chains.value(slice->inputs[0]).shape.size() != 1)
    return std::nullopt;
  const auto from = integers(chains, *slice, 1);
  const auto steps = integers(chains, *slice, 4);
  const std::int64_t length = chains.value(slice->outputs[0]).shape[0];
  if (!from || from->size() != 1 || from->front() < 0 || (steps && *steps != Shape{1}))
    return std::nullopt;
  bag.from = from->front();
  bag.to = bag.from + length;
  return slice->inputs[0];
}

std::optional<Bag> bag_of(const Chains& chains, const std::string& row, Chains::Members& members) {
  const Node* unsqueezed = made_along(chains, row, ops::Unsqueeze, 0, members);
  const Node* joined = nullptr;
  Bag bag;
  for (const std::string_view mode : kModes) {
    if (unsqueezed != nullptr && joined == nullptr)
      joined = made_along(chains, unsqueezed->inputs[0], mode, 0, members);
  }
  if (joined == nullptr || joined->attributes.integer("keepdims", 1) != 0)
    return std::nullopt;
  bag.op_type = joined->op_type;
  std::string rows = joined->inputs[0];
  if (const Node* weighted = chains.made_by(rows, ops::Mul, members)) {
    const Node* column = made_along(chains, weighted->inputs.at(1), ops::Unsqueeze, 1, members);
    const auto weights =
        column == nullptr ? std::nullopt : part_of(chains, column->inputs[0], bag, members);
    if (!weights)
      return std::nullopt;
    bag.weights = *weights;
    rows = weighted->inputs[0];
  }
  const std::int64_t from = bag.from;
  const Node* looked_up = chains.made_by(rows, ops::Gather, members);
  if (looked_up == nullptr || looked_up->attributes.integer("axis", 0) != 0 ||
      chains.value(looked_up->inputs[0]).shape.size() != 2)
    return std::nullopt;
  bag.table = looked_up->inputs[0];
  const auto indices = part_of(chains, looked_up->inputs[1], bag, members);
  if (!indices || (!bag.weights.empty() && bag.from != from))
    return std::nullopt;
  bag.indices = *indices;
  return bag;
}

/// Length of the bags if they are equally long and cover all indices in order.
std::optional<std::int64_t> length_of(const Chains& chains, const std::vector<Bag>& bags) {
  const Bag& first = bags.front();
  const std::int64_t length = first.to - first.from;
  const auto count = static_cast<std::int64_t>(bags.size());
  std::int64_t at = 0;
  for (const Bag& bag : bags) {
    if (bag.op_type != first.op_type || bag.table != first.table || bag.indices != first.indices ||
        bag.weights != first.weights || bag.from != at || bag.to != at + length)
      return std::nullopt;
    at = bag.to;
  }
  const auto covers = [&](const std::string& name) {
    return chains.value(name).shape == Shape{count * length};
  };
  const bool whole = covers(first.indices) && (first.weights.empty() || covers(first.weights));
  return whole && length > 0 ? std::optional(length) : std::nullopt;
}

/// Adds nodes that read the rows of all bags, [bags, length, width], weighted; returns the value's
/// name.
std::string all_rows(Chains& chains, const Bag& bag, std::int64_t count, std::int64_t length,
                     std::size_t at) {
  const std::string indices = chains.reshaped(bag.indices, {count, length}, at);
  Value rows = chains.value(bag.table);
  rows.values.reset();
  rows.is_constant = false;
  rows.shape = {count, length, rows.shape[1]};
  const std::string found =
      chains.inserted(ops::Gather, {bag.table, indices}, {{"axis", std::int64_t{0}}}, rows, at);
  if (bag.weights.empty())
    return found;
  const std::string weights = chains.reshaped(bag.weights, {count, length, 1}, at);
  return chains.inserted(ops::Mul, {found, weights}, {}, rows, at);
}

} // namespace

bool recognise_embedding_bags(Chains& chains, std::size_t at) {
  const Node& node = chains.node(at);
  if (node.op_type != ops::Concat || !node.domain.empty() || node.inputs.size() < 2 ||
      node.attributes.integer("axis", 1) != 0)
    return false;
  Chains::Members members{at};
  std::vector<Bag> bags;
  for (const std::string& row : node.inputs) {
    const auto bag = bag_of(chains, row, members);
    if (!bag)
      return false;
    bags.push_back(*bag);
  }
  const auto length = length_of(chains, bags);
  if (!length || !chains.closed(members, at))
    return false;
  const Bag& bag = bags.front();
  const auto count = static_cast<std::int64_t>(bags.size());
  Chains::Replacement joined{.op_type = bag.op_type,
                             .domain = "",
                             .inputs = {all_rows(chains, bag, count, *length, at)},
                             .attributes = {{"keepdims", std::int64_t{0}}}};
  if (bag.op_type == ops::ReduceSum)
    joined.inputs.push_back(chains.integers({1}, at));
  else
    joined.attributes.set("axes", Shape{1});
  chains.replace(at, members, std::move(joined));
  return true;
}

} // namespace monet::onnx_file

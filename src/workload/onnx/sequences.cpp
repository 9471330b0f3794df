// Resolves operators on sequences of tensors while onnx_reader.cpp visits the nodes; see
// control.hpp.
#include "workload/onnx/control.hpp"
#include "workload/onnx/expand.hpp"
#include "workload/onnx/proto.hpp"
#include "workload/shared/op_types.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <string_view>

namespace monet::onnx_file {

namespace {

/// Maximum total elements of all lists; a loop of n insertions makes n * n / 2.
constexpr std::size_t kMaxStored = 50'000'000;
constexpr std::int64_t kMaxParts = 100'000;

constexpr std::array<OpType, 8> kOperators{
    ops::SequenceEmpty, ops::SequenceConstruct, ops::SequenceInsert,     ops::SequenceErase,
    ops::SequenceAt,    ops::SequenceLength,    ops::ConcatFromSequence, ops::SplitToSequence};

} // namespace

/// Node being resolved.
struct Sequences::Context {
  const Model& model;
  const Node& node;
  Values& values;

  [[noreturn]] void refuse(std::string_view what, std::string_view detail = {}) const {
    throw InputError(at_node(model, node, detail), what);
  }
  bool has(std::size_t i) const { return i < node.inputs.size() && !node.inputs[i].empty(); }

  const Value& tensor(std::size_t i) const {
    const Value* value = has(i) ? input_value(node, i, values) : nullptr;
    if (value == nullptr)
      refuse(fmt::format("input {} is not a tensor", i));
    return *value;
  }

  Integers integers(std::size_t i, std::string_view what) const {
    const Value& value = tensor(i);
    const auto* numbers = value.is_constant ? integers_of(value.values) : nullptr;
    if (numbers == nullptr)
      refuse(fmt::format("the {} depends on data", what), fmt::format("input {}", i));
    return *numbers;
  }

  /// Input `i` as a position in a list of `count`; negative positions count from the end.
  std::size_t position(std::size_t i, std::size_t count) const {
    const Integers numbers = integers(i, "position");
    const auto size = static_cast<std::int64_t>(count);
    const std::int64_t at = numbers.size() == 1 ? numbers[0] : size;
    const std::int64_t from_front = at < 0 ? at + size : at;
    if (numbers.size() != 1 || at < -size || from_front >= size)
      refuse(fmt::format("the position is outside a sequence of {}", count),
             fmt::format("input {}", i));
    return static_cast<std::size_t>(from_front);
  }
};

bool Sequences::handles(const Node& node) const {
  if (!node.domain.empty())
    return false;
  if (node.op_type == ops::Identity)
    return node.inputs.size() == 1 && has(node.inputs[0]);
  return std::ranges::find(kOperators, node.op_type) != kOperators.end();
}

std::uint32_t Sequences::number_of(const std::string& tensor) {
  const auto [at, added] = numbers_.try_emplace(tensor, static_cast<std::uint32_t>(names_.size()));
  if (added)
    names_.push_back(tensor);
  return at->second;
}

const Sequences::List& Sequences::list(const Context& context) const {
  const auto found = context.has(0) ? lists_.find(context.node.inputs[0]) : lists_.end();
  if (found == lists_.end())
    context.refuse("input 0 is not a sequence");
  return found->second;
}

void Sequences::set(const Context& context, List list) {
  stored_ += list.tensors.size();
  if (stored_ > kMaxStored)
    context.refuse(fmt::format("sequences of more than {} tensors in all", kMaxStored));
  lists_[context.node.outputs[0]] = std::move(list);
}

/// Resolves SequenceEmpty and SequenceConstruct.
Sequences::Resolved Sequences::make(const Context& context) {
  List made;
  if (context.node.op_type == ops::SequenceEmpty) {
    const auto type = element_type(context.node.attributes.integer("dtype", 1));
    if (!type)
      context.refuse("this element type is not supported", "attribute 'dtype'");
    made.type = *type;
  }
  for (std::size_t i = 0; i < context.node.inputs.size(); ++i) {
    const ElementType type = context.tensor(i).type;
    if (i > 0 && type != made.type)
      context.refuse("the tensors are of several element types");
    made.type = type;
    made.tensors.push_back(number_of(context.node.inputs[i]));
  }
  set(context, std::move(made));
  return {};
}

/// Resolves SequenceInsert, SequenceErase and Identity.
Sequences::Resolved Sequences::change(const Context& context) {
  List made = list(context);
  const std::size_t count = made.tensors.size();
  const auto place = [&](std::size_t at) {
    return made.tensors.begin() + static_cast<std::ptrdiff_t>(at);
  };
  if (context.node.op_type == ops::SequenceInsert) {
    if (count > 0 && context.tensor(1).type != made.type)
      context.refuse("the tensor is not of the sequence's element type");
    made.type = context.tensor(1).type;
    // An insertion may be one past the end; negative positions still count from the last element.
    const bool at_end = !context.has(2) || context.integers(2, "position") ==
                                               std::vector{static_cast<std::int64_t>(count)};
    made.tensors.insert(place(at_end ? count : context.position(2, count)),
                        number_of(context.node.inputs[1]));
  } else if (context.node.op_type == ops::SequenceErase) {
    if (count == 0)
      context.refuse("the sequence is empty");
    made.tensors.erase(place(context.has(1) ? context.position(1, count) : count - 1));
  }
  set(context, std::move(made));
  return {};
}

/// Resolves SequenceAt and SequenceLength.
Sequences::Resolved Sequences::look_up(const Context& context) {
  const List& from = list(context);
  const std::size_t count = from.tensors.size();
  if (context.node.op_type == ops::SequenceAt)
    return {{}, names_[from.tensors[context.position(1, count)]]};
  context.values[context.node.outputs[0]] = {.type = ElementType::int64,
                                             .values =
                                                 std::vector{static_cast<std::int64_t>(count)},
                                             .is_constant = true};
  return {};
}

/// Resolves ConcatFromSequence.
Sequences::Resolved Sequences::join(const Context& context) {
  const List& from = list(context);
  const Attributes& attributes = context.node.attributes;
  if (from.tensors.empty())
    context.refuse("the sequence is empty");
  if (!attributes.has("axis"))
    context.refuse("attribute 'axis' is missing");
  const std::int64_t axis = attributes.integer("axis", 0);
  NodeWriter writer(context.node, context.values);
  std::vector<std::string> parts;
  for (std::size_t i = 0; i < from.tensors.size(); ++i) {
    const std::string& tensor = names_[from.tensors[i]];
    const bool new_axis = attributes.integer("new_axis", 0) != 0;
    parts.push_back(new_axis ? writer.unsqueeze(fmt::format("part{}", i), tensor, {axis}) : tensor);
  }
  writer.concat("whole", parts, axis, context.node.outputs[0]);
  return {writer.take(), {}};
}

/// Resolves SplitToSequence.
Sequences::Resolved Sequences::split(const Context& context) {
  const Value& tensor = context.tensor(0);
  const auto rank = static_cast<std::int64_t>(tensor.shape.size());
  std::int64_t axis = context.node.attributes.integer("axis", 0);
  axis += axis < 0 ? rank : 0;
  if (axis < 0 || axis >= rank)
    context.refuse("the axis is outside the tensor", "attribute 'axis'");
  const std::int64_t length = tensor.shape[static_cast<std::size_t>(axis)];
  Integers sizes{1};
  const bool each_alone = !context.has(1);
  if (!each_alone)
    sizes = context.integers(1, "length of a part");
  if (each_alone || context.tensor(1).shape.empty()) {
    const std::int64_t each = sizes.at(0);
    if (each < 1 || length / each > kMaxParts)
      context.refuse(fmt::format("{} elements cannot be split by {}", length, each));
    sizes.assign(static_cast<std::size_t>(length / each), each);
    if (length % each != 0)
      sizes.push_back(length % each);
  }
  if (sizes.size() > static_cast<std::size_t>(kMaxParts))
    context.refuse(fmt::format("more than {} parts", kMaxParts));
  NodeWriter writer(context.node, context.values);
  std::vector<std::string> parts;
  if (!sizes.empty())
    parts = writer.split("parts", context.node.inputs[0], axis, sizes);
  List made{tensor.type, {}};
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const bool drops_axis = each_alone && context.node.attributes.integer("keepdims", 1) == 0;
    made.tensors.push_back(number_of(
        drops_axis ? writer.squeeze(fmt::format("part{}", i), parts[i], axis) : parts[i]));
  }
  set(context, std::move(made));
  return {writer.take(), {}};
}

Sequences::Resolved Sequences::resolve(const Model& model, const Node& node, Values& values) {
  const Context context{model, node, values};
  if (node.outputs.size() != 1 || node.outputs[0].empty())
    context.refuse("one output is expected");
  const OpType op = node.op_type;
  if (op == ops::SequenceEmpty || op == ops::SequenceConstruct)
    return make(context);
  if (op == ops::SequenceAt || op == ops::SequenceLength)
    return look_up(context);
  if (op == ops::ConcatFromSequence)
    return join(context);
  return op == ops::SplitToSequence ? split(context) : change(context);
}

} // namespace monet::onnx_file

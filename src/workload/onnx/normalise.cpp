// Rewrites nodes of other opsets in the form of opset 17, so that later stages see one form per
// operator. onnx_reader.cpp calls it before inference.
#include "base/shared/checked.hpp"
#include "workload/onnx/expand.hpp"
#include "workload/onnx/model.hpp"
#include "workload/shared/operators.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <span>

namespace monet::onnx_file {

namespace {

/// Moves an attribute to input `index` as a constant.
void to_input(Node& node, std::string_view attribute, std::size_t index, Values& values,
              bool scalar = false) {
  const auto found = node.attributes.all().find(attribute);
  if (found == node.attributes.all().end())
    return;
  Value constant;
  constant.is_constant = true;
  if (const auto* i = std::get_if<std::int64_t>(&found->second)) {
    constant.type = ElementType::int64;
    constant.values = std::vector{*i};
  } else if (const auto* is = std::get_if<Integers>(&found->second)) {
    constant.type = ElementType::int64;
    constant.values = *is;
  } else if (const auto* f = std::get_if<double>(&found->second)) {
    constant.values = std::vector{*f};
  } else if (const auto* fs = std::get_if<std::vector<double>>(&found->second)) {
    constant.values = *fs;
  } else {
    return;
  }
  const auto count = std::visit([](const auto& list) { return list.size(); }, *constant.values);
  if (!scalar)
    constant.shape = {static_cast<std::int64_t>(count)};
  const std::string name = fmt::format("{}/{}", node.name, attribute);
  values[name] = std::move(constant);
  if (node.inputs.size() <= index)
    node.inputs.resize(index + 1);
  node.inputs[index] = name;
  node.attributes = without(node.attributes, {attribute});
}

/// Before opset 7, binary operators broadcast only if requested, aligned at attribute `axis`.
void legacy_broadcast(const Model& model, Node& node, const Values& values) {
  if (!node.attributes.has("broadcast") && !node.attributes.has("axis"))
    return;
  const std::int64_t axis = node.attributes.integer("axis", -1);
  const Value* a = input_value(node, 0, values);
  const Value* b = input_value(node, 1, values);
  if (axis >= 0 && node.inputs.size() == 2 && a != nullptr && b != nullptr &&
      axis + static_cast<std::int64_t>(b->shape.size()) !=
          static_cast<std::int64_t>(a->shape.size())) {
    throw InputError(at_node(model, node, "attribute 'axis'"),
                     "broadcasting along an inner axis (opset 6 and before) is not supported",
                     "convert the model to opset 7 or later");
  }
  node.attributes = without(node.attributes, {"broadcast", "axis"});
}

/// Up to opset 12, softmax normalised over `axis` (default 1) and all later axes. Several axes
/// become one row axis in reshape_legacy_softmax.
void legacy_softmax(const Model& model, Node& node, const Values& values) {
  const Value* input = input_value(node, 0, values);
  if (input == nullptr)
    return;
  const auto rank = static_cast<std::int64_t>(input->shape.size());
  std::int64_t axis = node.attributes.integer("axis", 1);
  if (axis < 0)
    axis += rank;
  if (axis < 0 || axis >= rank) {
    throw InputError(at_node(model, node, "attribute 'axis'"), "the axis is outside the tensor");
  }
  node.attributes.set("axis", axis);
}

void legacy_resize(Node& node, Values& values) {
  if (node.op_type == ops::Upsample) {
    to_input(node, "scales", 1, values);
    node.op_type = ops::Resize;
  }
  if (node.inputs.size() == 2)
    node.inputs = {node.inputs[0], "", node.inputs[1]};
  node.attributes.set("coordinate_transformation_mode", std::string("asymmetric"));
  node.attributes.set("nearest_mode", std::string("floor"));
  if (node.attributes.text("mode", "") == "bilinear") {
    node.attributes.set("mode", std::string("linear"));
  }
}

/// Attributes that became inputs in a later opset.
struct BecameInput {
  std::int64_t since;
  OpType op_type;
  std::string_view attribute;
  std::size_t input;
  bool scalar = false;
};
constexpr BecameInput kBecameInputs[]{
    {5, ops::Reshape, "shape", 1},
    {10, ops::Slice, "axes", 3},
    {10, ops::Slice, "ends", 2},
    {10, ops::Slice, "starts", 1},
    {10, ops::TopK, "k", 1},
    {11, ops::Clip, "max", 2, true},
    {11, ops::Clip, "min", 1, true},
    {11, ops::Pad, "paddings", 1},
    {11, ops::Pad, "pads", 1},
    {11, ops::Pad, "value", 2, true},
    {12, ops::Dropout, "ratio", 1, true},
    {13, ops::ReduceSum, "axes", 1},
    {13, ops::Split, "split", 1},
    {13, ops::Squeeze, "axes", 1},
    {13, ops::Unsqueeze, "axes", 1},
};

void from_older(const Model& model, Node& node, Values& values) {
  const OpType op = node.op_type;
  node.attributes = without(node.attributes, {"consumed_inputs"});
  if (node.opset < 7 &&
      op.is_one_of({ops::Add, ops::Sub, ops::Mul, ops::Div, ops::Pow, ops::And, ops::Or, ops::Xor,
                    ops::Equal, ops::Greater, ops::Less, ops::PRelu, ops::Gemm})) {
    if (op == ops::Gemm)
      node.attributes = without(node.attributes, {"broadcast"});
    else
      legacy_broadcast(model, node, values);
  }
  if (node.opset < 13 && has_trait(node.op_type, OperatorRow::kFlattened))
    legacy_softmax(model, node, values);
  if (node.opset < 12 && op == ops::Dropout)
    node.attributes = without(node.attributes, {"is_test"});
  for (const BecameInput& moved : kBecameInputs) {
    if (node.opset < moved.since && op == moved.op_type)
      to_input(node, moved.attribute, moved.input, values, moved.scalar);
  }
  if (node.opset < 16 && op == ops::RoiAlign)
    node.attributes.set("coordinate_transformation_mode", std::string("output_half_pixel"));
  if (op == ops::Upsample || (node.opset < 11 && op == ops::Resize))
    legacy_resize(node, values);
  if (node.opset < 14 && op == ops::BatchNormalization) {
    node.attributes = without(node.attributes, {"is_test", "spatial"});
    const bool training = node.outputs.size() >= 3;
    node.outputs.resize(training ? 3 : 1); // without the saved statistics
    if (training)
      node.attributes.set("training_mode", std::int64_t{1});
  }
}

bool is_legacy_softmax(const Node& node) {
  return node.domain.empty() && node.opset < 13 && node.inputs.size() == 1 &&
         node.outputs.size() == 1 && has_trait(node.op_type, OperatorRow::kFlattened);
}

/// Reshape to rows, softmax over each row, Reshape back. Empty if one axis is normalised.
std::vector<Node> reshape_legacy_softmax(const Model& model, const Node& node, Values& values) {
  const Value* input = input_value(node, 0, values);
  if (input == nullptr)
    return {};
  Node softmax = node;
  legacy_softmax(model, softmax, values);
  const Integers shape = input->shape;
  const auto axis = static_cast<std::ptrdiff_t>(softmax.attributes.integer("axis", 1));
  const auto several = [](std::int64_t size) { return size != 1; };
  if (std::none_of(shape.begin() + axis + 1, shape.end(), several))
    return {};
  Integers rows(shape.begin(), shape.begin() + axis);
  rows.push_back(checked_product(std::span(shape).subspan(static_cast<std::size_t>(axis))));
  const std::string base = node.name + "/rows";
  values[base + "/shape"] = integer_constant(rows);
  values[base + "/shape_back"] = integer_constant(shape);
  Node to_rows{.name = base, .op_type = ops::Reshape, .domain = "", .opset = 17};
  to_rows.inputs = {node.inputs[0], base + "/shape"};
  to_rows.outputs = {base + "/data"};
  Node back{.name = base + "/back", .op_type = ops::Reshape, .domain = "", .opset = 17};
  back.inputs = {base + "/result", base + "/shape_back"};
  back.outputs = node.outputs;
  softmax.inputs = to_rows.outputs;
  softmax.outputs = {back.inputs[0]};
  softmax.opset = 17;
  return {to_rows, softmax, back};
}

/// ONNX Runtime's activations in MONET's form: BiasGelu and FastGelu become an addition and a GELU,
/// QuickGelu becomes x * sigmoid(alpha*x). Empty for other operators.
std::vector<Node> expand_microsoft(const Node& node) {
  static constexpr std::array<OpType, 4> kNames{ops::BiasGelu, ops::FastGelu, ops::Gelu,
                                                ops::QuickGelu};
  if (node.domain != "com.microsoft" || node.inputs.empty() || node.outputs.size() != 1 ||
      std::ranges::find(kNames, node.op_type) == kNames.end()) {
    return {};
  }
  Node function{.name = node.name, .op_type = ops::Gelu, .domain = "", .opset = 20};
  function.inputs = {node.inputs[0]};
  function.outputs = node.outputs;
  if (node.op_type == ops::FastGelu)
    function.attributes.set("approximate", std::string("tanh"));
  if (node.op_type == ops::QuickGelu) {
    function.op_type = ops::Silu;
    function.domain = kMonetDomain;
    function.attributes.set("alpha", node.attributes.number("alpha", 1.702));
  }
  if (node.inputs.size() < 2 || node.inputs[1].empty())
    return {function};
  Node sum{.name = node.name + "/bias", .op_type = ops::Add, .domain = "", .opset = 17};
  sum.inputs = {node.inputs[0], node.inputs[1]};
  sum.outputs = {sum.name + "/sum"};
  function.inputs = sum.outputs;
  return {sum, function};
}

} // namespace

Attributes without(const Attributes& attributes, std::initializer_list<std::string_view> dropped) {
  Attributes kept;
  for (const auto& [name, value] : attributes.all()) {
    if (std::ranges::find(dropped, name) == dropped.end())
      kept.set(name, value);
  }
  return kept;
}

void set_integers(Node& node, std::size_t index, std::string_view name, Integers list,
                  Values& values) {
  const std::string full = fmt::format("{}/{}", node.name, name);
  values[full] = integer_constant(std::move(list));
  if (node.inputs.size() <= index)
    node.inputs.resize(index + 1);
  node.inputs[index] = full;
}

namespace {

/// Drops operands without elements from a Concat (a roll by zero); keeps at least one.
void drop_empty_parts(Node& node, const Values& values) {
  if (node.op_type != ops::Concat)
    return;
  const auto is_empty = [&](const std::string& name) {
    const auto part = values.find(name);
    return part != values.end() &&
           std::ranges::find(part->second.shape, 0) != part->second.shape.end();
  };
  if (!std::ranges::all_of(node.inputs, is_empty))
    std::erase_if(node.inputs, is_empty);
}

} // namespace

void normalise(const Model& model, Node& node, Values& values) {
  if (!node.domain.empty())
    return;
  if (node.opset < 1)
    throw InputError(at_node(model, node), "the model imports no opset for it");
  check_opset(model, node);
  if (node.opset < 17)
    from_older(model, node, values);
  if (node.opset > 17)
    from_newer(model, node, values);
  settle_axes(model, node, values);
  drop_empty_parts(node, values);
}

namespace {

/// Slice and Squeeze for a Gather of one index. Constant data are folded instead.
std::vector<Node> slice_one(const Node& node, Values& values) {
  const Value* data = input_value(node, 0, values);
  const Value* index = input_value(node, 1, values);
  if (!node.domain.empty() || node.op_type != ops::Gather || node.outputs.size() != 1 ||
      data == nullptr || data->is_constant || index == nullptr || index->shape.size() > 1 ||
      data->shape.empty())
    return {};
  const auto* at = integers_of(index->values);
  const auto rank = static_cast<std::int64_t>(data->shape.size());
  std::int64_t axis = node.attributes.integer("axis", 0);
  axis += axis < 0 ? rank : 0;
  if (at == nullptr || at->size() != 1 || axis < 0 || axis >= rank)
    return {};
  const std::int64_t size = data->shape[static_cast<std::size_t>(axis)];
  const std::int64_t first = at->front() + (at->front() < 0 ? size : 0);
  if (first < 0 || first >= size)
    return {};
  NodeWriter writer(node, values);
  const bool keeps_axis = index->shape.size() == 1;
  const std::string slice = writer.add(ops::Slice, "slice",
                                       {node.inputs[0], writer.integers({first}),
                                        writer.integers({first + 1}), writer.integers({axis})},
                                       {}, keeps_axis ? node.outputs[0] : "");
  if (!keeps_axis)
    writer.add(ops::Squeeze, "squeeze", {slice, writer.integers({axis})}, {}, node.outputs[0]);
  return writer.take();
}

} // namespace

std::vector<Node> expand(const Model& model, const Node& node, Values& values, bool as_views) {
  if (as_views) {
    if (std::vector<Node> parts = slice_one(node, values); !parts.empty())
      return parts;
  }
  return is_legacy_softmax(node) ? reshape_legacy_softmax(model, node, values)
                                 : expand_microsoft(node);
}

} // namespace monet::onnx_file

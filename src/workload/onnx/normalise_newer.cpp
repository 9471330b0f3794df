// Rewrites nodes of opsets 18 to 22 in the form of opset 17; normalise.cpp calls it. Operators that
// opset 17 lacks are in newer_operators.cpp.
#include "base/shared/checked.hpp"
#include "workload/onnx/model.hpp"
#include "workload/onnx/proto.hpp"
#include "workload/shared/op_types.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <optional>
#include <span>
#include <utility>

namespace monet::onnx_file {

namespace {

constexpr std::int64_t kNewestOpset = 22;

/// Node being rewritten.
struct Newer {
  const Model& model;
  Node& node;
  Values& values;

  [[noreturn]] void refuse(std::string_view what) const {
    throw InputError(at_node(model, node),
                     fmt::format("{} of opset {} is not supported", what, node.opset),
                     "export with opset 17");
  }
  bool has(std::size_t i) const { return i < node.inputs.size() && !node.inputs[i].empty(); }
  const Integers* integers(std::size_t i) const {
    const Value* value = input_value(node, i, values);
    return value != nullptr ? integers_of(value->values) : nullptr;
  }
  void drop(std::initializer_list<std::string_view> names) const {
    node.attributes = without(node.attributes, names);
  }
};

/// Expands pads of some axes to all axes. Returns false if the pads are unknown.
bool spread_pads(const Newer& at) {
  const auto* axes = at.integers(3);
  const auto* pads = at.integers(1);
  const Value* input = input_value(at.node, 0, at.values);
  if (axes == nullptr || pads == nullptr || input == nullptr || pads->size() != 2 * axes->size())
    return false;
  const auto rank = static_cast<std::int64_t>(input->shape.size());
  Integers all(static_cast<std::size_t>(2 * rank), 0);
  for (std::size_t i = 0; i < axes->size(); ++i) {
    const std::int64_t axis = (*axes)[i] < 0 ? (*axes)[i] + rank : (*axes)[i];
    if (axis < 0 || axis >= rank)
      return false;
    all[static_cast<std::size_t>(axis)] = (*pads)[i];
    all[static_cast<std::size_t>(axis + rank)] = (*pads)[i + axes->size()];
  }
  set_integers(at.node, 1, "all_pads", std::move(all), at.values);
  return true;
}

void pad(const Newer& at) {
  if (at.has(3) && !spread_pads(at))
    at.refuse("Pad along computed axes");
  at.node.inputs.resize(std::min<std::size_t>(at.node.inputs.size(), 3));
  if (at.node.attributes.text("mode", "constant") == "wrap")
    at.refuse("Pad that wraps around");
}

/// A Split without sizes has equal parts and a smaller last one.
void split(const Newer& at) {
  Node& node = at.node;
  const auto parts = static_cast<std::int64_t>(node.outputs.size());
  const bool has_number = node.attributes.has("num_outputs");
  const std::int64_t wanted = node.attributes.integer("num_outputs", parts);
  at.drop({"num_outputs"});
  if (at.has(1) == has_number)
    throw InputError(at_node(at.model, node),
                     "a Split has either sizes or a 'num_outputs' since opset 18");
  const Value* input = input_value(node, 0, at.values);
  if (at.has(1) || input == nullptr || node.outputs.empty())
    return;
  const auto& shape = input->shape;
  const auto rank = static_cast<std::int64_t>(shape.size());
  std::int64_t axis = node.attributes.integer("axis", 0);
  axis = axis < 0 ? axis + rank : axis;
  if (axis < 0 || axis >= rank)
    return;
  if (wanted != parts)
    throw InputError(at_node(at.model, node, "attribute 'num_outputs'"),
                     fmt::format("{} parts do not fit {} outputs", wanted, parts));
  std::int64_t left = shape[static_cast<std::size_t>(axis)];
  const std::int64_t each = (left + parts - 1) / parts;
  Integers sizes;
  for (std::int64_t i = 0; i < parts; ++i) {
    sizes.push_back(std::min(each, left));
    left -= sizes.back();
  }
  set_integers(node, 1, "sizes", std::move(sizes), at.values);
}

// --- Resize ---

/// Expands a list for some axes to all axes, with `fallback` elsewhere.
template <class T>
std::vector<T> for_all_axes(const std::vector<T>& some, const Integers& axes,
                            std::vector<T> fallback) {
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const auto rank = static_cast<std::int64_t>(fallback.size());
    fallback[static_cast<std::size_t>(axes[i] < 0 ? axes[i] + rank : axes[i])] = some[i];
  }
  return fallback;
}

/// Sizes with a common scale for the resized axes, at most or at least the requested sizes
/// (`within`). Empty if a single scale cannot yield them.
Integers keep_aspect(const Integers& shape, Integers sizes, const Integers& axes, bool within) {
  const auto rank = static_cast<std::int64_t>(shape.size());
  std::vector<std::size_t> resized;
  for (const std::int64_t axis : axes)
    resized.push_back(static_cast<std::size_t>(axis < 0 ? axis + rank : axis));
  const auto scale_of = [&](std::size_t axis) {
    return static_cast<double>(sizes[axis]) / static_cast<double>(shape[axis]);
  };
  const auto less = [&](std::size_t a, std::size_t b) { return scale_of(a) < scale_of(b); };
  if (resized.empty() || std::ranges::any_of(resized, [&](std::size_t axis) {
        return shape[axis] < 1 || sizes[axis] < 1;
      }))
    return {};
  const double scale = scale_of(within ? *std::ranges::min_element(resized, less)
                                       : *std::ranges::max_element(resized, less));
  for (const std::size_t axis : resized) {
    constexpr double kRounding = 1e-9;
    const double size = scale * static_cast<double>(shape[axis]);
    if (std::abs(size - std::round(size)) > kRounding * size)
      return {}; // the scale is not the ratio of sizes
    sizes[axis] = saturated_integer(std::round(size));
  }
  return sizes;
}

/// Expands sizes and scales of some axes to all axes. Returns false if they depend on data or do
/// not fit.
bool spread_sizes(const Newer& at, const Integers& shape, const Integers& axes,
                  const std::string& policy) {
  for (const std::size_t list : {std::size_t{2}, std::size_t{3}}) {
    if (!at.has(list))
      continue;
    Value whole = at.values.at(at.node.inputs[list]);
    auto* sizes = whole.values ? std::get_if<Integers>(&*whole.values) : nullptr;
    auto* scales = whole.values ? std::get_if<std::vector<double>>(&*whole.values) : nullptr;
    if (list == 2 && scales != nullptr && scales->empty())
      continue;
    if (list == 3 && sizes != nullptr && sizes->size() == axes.size()) {
      *sizes = for_all_axes(*sizes, axes, shape);
      if (policy != "stretch")
        *sizes = keep_aspect(shape, std::move(*sizes), axes, policy == "not_larger");
      if (sizes->empty())
        return false;
    } else if (list == 2 && scales != nullptr && scales->size() == axes.size()) {
      *scales = for_all_axes(*scales, axes, std::vector<double>(shape.size(), 1.0));
    } else {
      return false;
    }
    whole.shape = {static_cast<std::int64_t>(shape.size())};
    at.node.inputs[list] = fmt::format("{}/of_all_axes_{}", at.node.name, list);
    at.values[at.node.inputs[list]] = std::move(whole);
  }
  return true;
}

/// Whether no axis shrinks, so that antialiasing has no effect.
bool only_enlarges(const Newer& at, const Integers& shape) {
  for (const std::size_t list : {std::size_t{2}, std::size_t{3}}) {
    const Value* value = at.has(list) ? input_value(at.node, list, at.values) : nullptr;
    if (value == nullptr)
      continue;
    const auto* sizes = integers_of(value->values);
    const auto* scales = reals_of(value->values);
    if (sizes == nullptr && scales == nullptr)
      return false;
    for (std::size_t i = 0; sizes != nullptr && i < sizes->size(); ++i) {
      if (i >= shape.size() || (*sizes)[i] < shape[i])
        return false;
    }
    if (scales != nullptr && std::ranges::any_of(*scales, [](double scale) { return scale < 1.0; }))
      return false;
  }
  return true;
}

void resize(const Newer& at) {
  Node& node = at.node;
  const bool antialias = node.attributes.integer("antialias", 0) != 0;
  const std::string policy = node.attributes.text("keep_aspect_ratio_policy", "stretch");
  Integers axes = node.attributes.integers("axes");
  at.drop({"antialias", "keep_aspect_ratio_policy", "axes"});
  if (node.attributes.text("coordinate_transformation_mode", "") == "half_pixel_symmetric")
    at.refuse("Resize with half_pixel_symmetric");
  const Value* input = input_value(node, 0, at.values);
  if (input == nullptr)
    return;
  const Integers shape = input->shape;
  const auto rank = static_cast<std::int64_t>(shape.size());
  const bool all = axes.empty();
  for (std::int64_t i = 0; all && i < rank; ++i)
    axes.push_back(i);
  const bool inside =
      std::ranges::all_of(axes, [&](std::int64_t a) { return a >= -rank && a < rank; });
  if ((!all || policy != "stretch") && (!inside || !spread_sizes(at, shape, axes, policy)))
    at.refuse(policy == "stretch" ? "Resize along computed axes"
                                  : "Resize with this keep_aspect_ratio_policy and these sizes");
  if (antialias && !only_enlarges(at, shape))
    at.refuse("Resize with antialias that reduces a size");
}

// --- others ---

/// Handles block-wise quantised tensors. An attribute may set the result type in place of the zero
/// point's type.
void quantize(const Newer& at) {
  if (at.node.attributes.integer("block_size", 0) != 0)
    at.refuse("quantisation in blocks (attribute 'block_size')");
  const std::int64_t type = at.node.attributes.integer("output_dtype", 0);
  at.drop({"block_size", "output_dtype", "precision", "saturate"});
  if (type == 0 || at.has(2) || at.node.op_type != ops::QuantizeLinear)
    return;
  const std::optional<ElementType> element = element_type(type);
  const Value* scale = input_value(at.node, 1, at.values);
  if (!element || scale == nullptr)
    at.refuse("quantisation to this 'output_dtype'");
  Value zero;
  zero.is_constant = true;
  zero.type = *element;
  zero.shape = scale->shape;
  const std::int64_t count = checked_product(std::span(std::as_const(zero.shape)));
  zero.values = Integers(static_cast<std::size_t>(count), 0);
  at.node.inputs.resize(3);
  at.node.inputs[2] = at.node.name + "/zero_point";
  at.values[at.node.inputs[2]] = std::move(zero);
}

/// Scale and bias are per group up to opset 20, per channel from 21 on.
void group_normalization(const Newer& at) {
  const Value* data = input_value(at.node, 0, at.values);
  if (data == nullptr || data->shape.size() < 2)
    return;
  const bool per_channel = at.node.opset > 20;
  const std::int64_t wanted =
      per_channel ? data->shape[1] : at.node.attributes.integer("num_groups", data->shape[1]);
  for (const std::size_t i : {std::size_t{1}, std::size_t{2}}) {
    const Value* own = input_value(at.node, i, at.values);
    if (own != nullptr && own->shape != std::vector{wanted})
      throw InputError(at_node(at.model, at.node, fmt::format("input {}", i)),
                       fmt::format("one value per {} is expected in opset {}: {}",
                                   per_channel ? "channel" : "group", at.node.opset, wanted));
  }
  at.drop({"stash_type"});
}

void cast(const Newer& at) {
  at.drop({"saturate", "round_mode"});
}

/// Drops dilations that are all 1.
void pool(const Newer& at) {
  const auto dilations = at.node.attributes.integers("dilations");
  if (std::ranges::all_of(dilations, [](std::int64_t d) { return d == 1; }))
    at.drop({"dilations"});
}

/// Opset 20 renamed the modes for any number of axes.
void grid_sample(const Newer& at) {
  const std::string mode = at.node.attributes.text("mode", "linear");
  if (mode == "linear" || mode == "cubic")
    at.node.attributes.set("mode", "bi" + mode);
}

struct NewerRule {
  OpType op_type;
  void (*rewrite)(const Newer&);
};
constexpr NewerRule kNewerRules[]{
    {ops::AveragePool, pool},
    {ops::Cast, cast},
    {ops::CastLike, cast},
    {ops::GroupNormalization, group_normalization},
    {ops::LpPool, pool},
    {ops::Pad, pad},
    {ops::DequantizeLinear, quantize},
    {ops::Resize, resize},
    {ops::Split, split},
    {ops::QuantizeLinear, quantize},
    {ops::GridSample, grid_sample},
};

/// Range of opsets in which an operator has an attribute; libonnx checks all other attributes.
struct Dated {
  std::string_view op_type; ///< or its prefix
  std::string_view attribute;
  std::int64_t first;
  std::int64_t last;
};
constexpr std::int64_t kNoEnd = std::numeric_limits<std::int64_t>::max();
constexpr Dated kDated[]{
    {ops::AveragePool, "dilations", 19, kNoEnd},
    {ops::LpPool, "dilations", 18, kNoEnd},
    {ops::LpPool, "ceil_mode", 18, kNoEnd},
    {"Reduce", "axes", 1, 17}, // later an input
};

/// Attribute values that exist since an opset.
struct RenamedAttribute {
  OpType op_type;
  std::string_view attribute;
  std::string_view word;
  std::int64_t first;
};
constexpr RenamedAttribute kWords[]{
    {ops::Pad, "mode", "wrap", 19},
    {ops::Resize, "coordinate_transformation_mode", "half_pixel_symmetric", 19},
};

} // namespace

void check_opset(const Model& model, const Node& node) {
  const auto refuse = [&](std::string_view attribute, std::string_view what) {
    throw InputError(at_node(model, node, fmt::format("attribute '{}'", attribute)),
                     fmt::format("{} in opset {}", what, node.opset));
  };
  for (const Dated& dated : kDated) {
    if (node.op_type.starts_with(dated.op_type) && node.attributes.has(dated.attribute) &&
        (node.opset < dated.first || node.opset > dated.last))
      refuse(dated.attribute, fmt::format("{} has no such attribute", node.op_type));
  }
  for (const RenamedAttribute& word : kWords) {
    if (node.op_type == word.op_type && node.opset < word.first &&
        node.attributes.text(word.attribute, "") == word.word)
      refuse(word.attribute, fmt::format("'{}' is not one of its values", word.word));
  }
}

void from_newer(const Model& model, Node& node, Values& values) {
  const Newer at{model, node, values};
  if (node.opset > kNewestOpset)
    at.refuse("an operator");
  const auto* rule = std::ranges::find(kNewerRules, node.op_type, &NewerRule::op_type);
  if (rule != std::end(kNewerRules))
    rule->rewrite(at);
}

// --- reductions ---

namespace {

/// Reductions that return a single element unchanged.

} // namespace

void settle_axes(const Model& model, Node& node, Values& values) {
  if (!node.op_type.starts_with("Reduce") || node.inputs.empty())
    return;
  Integers axes = node.attributes.integers("axes");
  const bool is_input = node.inputs.size() > 1 && !node.inputs[1].empty();
  if (is_input) {
    const Value* value = input_value(node, 1, values);
    const auto* known =
        value != nullptr && value->is_constant ? integers_of(value->values) : nullptr;
    if (known == nullptr)
      throw InputError(at_node(model, node, "input 1"), "the axes depend on data",
                       "export the network with constant axes");
    axes = *known;
  }
  const bool none = axes.empty() && node.attributes.integer("noop_with_empty_axes", 0) != 0;
  if (none) {
    if (!node.op_type.is_one_of({ops::ReduceLogSumExp, ops::ReduceMax, ops::ReduceMean,
                                 ops::ReduceMin, ops::ReduceProd, ops::ReduceSum}))
      throw InputError(at_node(model, node, "attribute 'noop_with_empty_axes'"),
                       "over no axes, this reduction is not supported");
    node.op_type = ops::Identity;
    node.inputs.resize(1);
    node.attributes = {};
    return;
  }
  node.attributes = without(node.attributes, {"noop_with_empty_axes"});
  if (node.op_type == ops::ReduceSum)
    return;
  node.inputs.resize(1);
  if (!axes.empty())
    node.attributes.set("axes", std::move(axes));
}

} // namespace monet::onnx_file

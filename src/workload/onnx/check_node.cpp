// Checks a node before shape inference. libonnx's inference functions divide by strides, keep axes
// in 32 bits and follow permutations without checks.
#include "base/shared/text.hpp"
#include "workload/onnx/model.hpp"
#include "workload/shared/op_types.hpp"

#include "monet/base/errors.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <limits>
#include <map>
#include <string_view>

namespace monet::onnx_file {

namespace {

/// Input position of the weight, for operators whose kernel size libonnx reads from the weight
/// without comparing ranks.
std::optional<std::size_t> weight_position(OpType op_type) {
  if (op_type == ops::Conv || op_type == ops::ConvTranspose || op_type == ops::ConvInteger)
    return 1;
  if (op_type == ops::QLinearConv)
    return 3;
  return std::nullopt;
}

void check_ranks(const Model& model, const Node& node, const Values& values) {
  const auto weight = weight_position(node.op_type);
  if (!weight || *weight >= node.inputs.size())
    return;
  const Value* x = input_value(node, 0, values);
  const Value* w = input_value(node, *weight, values);
  if (x == nullptr || w == nullptr)
    return;
  const std::size_t rank = x->shape.size();
  if (rank < 3 || w->shape.size() != rank) {
    throw InputError(
        at_node(model, node),
        fmt::format("input and weight have {} and {} axes; equal numbers of at least 3 "
                    "are expected",
                    rank, w->shape.size()));
  }
}

/// Refuses integers beyond 32 bits, which are never valid axes, window sizes or element types.
void check_widths(const Model& model, const Node& node) {
  const auto is_wide = [](std::int64_t value) {
    return value > std::numeric_limits<std::int32_t>::max() ||
           value < std::numeric_limits<std::int32_t>::min();
  };
  if (node.op_type == ops::Constant)
    return;
  for (const auto& [name, value] : node.attributes.all()) {
    const auto* one = std::get_if<std::int64_t>(&value);
    const auto* list = std::get_if<Integers>(&value);
    const bool wide = (one != nullptr && is_wide(*one)) ||
                      (list != nullptr && std::any_of(list->begin(), list->end(), is_wide));
    if (wide)
      throw InputError(at_node(model, node, fmt::format("attribute '{}'", name)),
                       "the number does not fit into 32 bits");
  }
}

/// Expected kind of attributes, for all operators. An attribute read as another kind would silently
/// have its default.
struct AttributeKind {
  std::string_view expected;
  bool (*fits)(const AttributeValue&);
  std::string_view names; ///< separated by blanks
};

template <class Kind>
bool holds(const AttributeValue& value) {
  return std::holds_alternative<Kind>(value);
}

constexpr AttributeKind kAttributeKinds[]{
    {"an integer is expected", holds<std::int64_t>,
     "align_corners antialias axis batch_axis batch_dims blank block_size blocksize ceil_mode "
     "count_include_pad detect_negative detect_positive divisor dtype end exclude_outside "
     "exclusive "
     "fill_last fill_where fmod group hidden_size ignore_index input_forget k keepdims layout "
     "linear_before_reset log_target master_weights most_recent new_axis noop_with_empty_axes "
     "num_groups num_outputs num_scan_inputs output_height output_width p quant_max quant_min "
     "reverse sampling_ratio select_last_index size sorted start stash_type storage_order strict "
     "time_axis to training_mode transA transB upper weight window_indices zero_infinity"},
    {"a number is expected", holds<double>,
     "alpha backoff beta bias cubic_coeff_a epsilon factor fill gamma growth_interval high inside "
     "label_smoothing lambd low mean momentum outside ratio scale spatial_scale threshold"},
    {"a text is expected", holds<std::string>,
     "approximate auto_pad coordinate_transformation_mode direction equation "
     "keep_aspect_ratio_policy mode nearest_mode padding_mode reads reduction view"},
    {"a list of integers is expected", holds<Integers>,
     "axes dilations kernel_shape output_padding output_shape pads perm scan_input_axes "
     "scan_input_directions scan_output_axes scan_output_directions split starts steps strides"},
    {"a list of numbers is expected", holds<std::vector<double>>,
     "activation_alpha activation_beta scales"},
    {"a list of texts is expected", holds<std::vector<std::string>>, "activations"},
};

using KindOfName = std::map<std::string_view, const AttributeKind*, std::less<>>;

KindOfName kinds_by_name() {
  KindOfName kinds;
  for (const AttributeKind& kind : kAttributeKinds) {
    for (const std::string_view name : split(kind.names, ' ', kind.names.size()))
      kinds.emplace(name, &kind);
  }
  return kinds;
}

void check_kinds(const Model& model, const Node& node) {
  static const KindOfName kinds = kinds_by_name();
  for (const auto& [name, value] : node.attributes.all()) {
    const auto row = kinds.find(name);
    if (row != kinds.end() && !row->second->fits(value))
      throw InputError(at_node(model, node, fmt::format("attribute '{}'", name)),
                       std::string(row->second->expected));
  }
}

void check_ranges(const Model& model, const Node& node, const Values& values) {
  for (const char* name : {"strides", "dilations", "kernel_shape"}) {
    const auto steps = node.attributes.integers(name);
    if (std::ranges::any_of(steps,
                            [](std::int64_t v) { return v < 1 || v > (std::int64_t{1} << 31); })) {
      throw InputError(at_node(model, node, fmt::format("attribute '{}'", name)),
                       "values of at least 1 are expected");
    }
  }
  if (node.attributes.integer("group", 1) < 1) {
    throw InputError(at_node(model, node, "attribute 'group'"), "at least 1 is expected");
  }
  if (node.op_type == ops::LayerNormalization && !node.inputs.empty()) {
    const Value* input = input_value(node, 0, values);
    const std::int64_t axis = node.attributes.integer("axis", -1);
    const auto rank =
        input == nullptr ? std::int64_t{0} : static_cast<std::int64_t>(input->shape.size());
    if (axis < -rank || axis >= rank) {
      throw InputError(at_node(model, node, "attribute 'axis'"),
                       fmt::format("axis {} is outside a tensor of {} axes", axis, rank));
    }
  }
  if (node.op_type == ops::Transpose && node.attributes.has("perm")) {
    auto perm = node.attributes.integers("perm");
    const Value* input = input_value(node, 0, values);
    std::sort(perm.begin(), perm.end());
    bool ok = input == nullptr || perm.size() == input->shape.size();
    for (std::size_t i = 0; i < perm.size(); ++i) {
      ok = ok && perm[i] == static_cast<std::int64_t>(i);
    }
    if (!ok) {
      throw InputError(at_node(model, node, "attribute 'perm'"),
                       "this is not a permutation of the input's axes");
    }
  }
}

} // namespace

void check_attributes(const Model& model, const Node& node) {
  check_kinds(model, node);
  check_widths(model, node);
}

void check_node(const Model& model, const Node& node, const Values& values) {
  check_ranks(model, node, values);
  check_ranges(model, node, values);
}

} // namespace monet::onnx_file

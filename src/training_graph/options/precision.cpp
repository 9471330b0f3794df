// The `precision:` part of a training file: an element type for each role, and products in fp8.
#include "training_graph/options/reader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace monet {

namespace {

/// Formats allowed for a role: only those of single elements (`plain`) if arithmetic is done in it.
enum class Formats { plain, all };

void read_named_type(const YamlNode& node, ProblemList& problems, std::string_view key,
                     Formats formats, std::optional<ElementType>& type) {
  const auto text = as_string(node, problems);
  if (!text)
    return;
  const bool scaled = *text == "int8"; // 8-bit numbers of real value have a scale
  const auto named = scaled ? ElementType::qint8 : element_type_named(*text);
  // Scales in single precision are `products`' business, casts and all.
  const bool number = named && is_floating(*named) && block_of(*named).scale_bits <= 8;
  const bool plain = number && block_of(*named).size == 1 && !scaled;
  if (number && (plain || formats == Formats::all)) {
    type = *named;
    return;
  }
  std::string hint = "one of: fp64, fp32, tf32, fp16, bf16, fp8_e4m3, fp8_e5m2, eXmY, qM.F";
  if (formats == Formats::all)
    hint += ", int8, mxint8, mxfp8_e5m2, mxfp8_e4m3, mxfp6_e3m2, mxfp6_e2m3, mxfp4_e2m1, the last "
            "ones also with a block's shape, as in mxfp8_e4m3_8x8";
  problems.add(node.where, fmt::format("'{}' is not an element type for '{}'", *text, key), hint);
}

void read_type(YamlMap& map, ProblemList& problems, std::string_view key, Formats formats,
               std::optional<ElementType>& type) {
  const YamlNode* node = map.find(key);
  if (node && node->kind != YamlNode::Kind::null && node->scalar != "none")
    read_named_type(*node, problems, key, formats, type);
}

constexpr std::array kFp8{Choice<ElementType>{"fp8_e4m3", ElementType::fp8_e4m3},
                          Choice<ElementType>{"fp8_e5m2", ElementType::fp8_e5m2}};
constexpr std::array kScalings{
    Choice<ScaledProducts::Scaling>{"delayed", ScaledProducts::Scaling::delayed},
    Choice<ScaledProducts::Scaling>{"current", ScaledProducts::Scaling::current},
    Choice<ScaledProducts::Scaling>{"block", ScaledProducts::Scaling::block},
};
constexpr std::array kAmaxChoices{Choice<bool>{"max", false}, Choice<bool>{"most_recent", true}};

/// Reads the settings of delayed scaling. Reports them as problems with any other scaling, which
/// would ignore them.
void read_history(YamlMap& map, ProblemList& problems, ScaledProducts& products) {
  constexpr std::int64_t kLongest = 1 << 20;
  constexpr std::int64_t kMargins = 64;
  const auto find = [&](std::string_view key) {
    const YamlNode* node = map.find(key);
    if (node && products.scaling != ScaledProducts::Scaling::delayed)
      problems.add(node->where, fmt::format("'{}' is of delayed scaling", key));
    return node;
  };
  if (const YamlNode* length = find("amax_history")) {
    products.amax_history = as_integer(*length, problems).value_or(1);
    if (products.amax_history < 1 || products.amax_history > kLongest)
      problems.add(length->where, fmt::format("a history of {} steps, outside [1, {}]",
                                              products.amax_history, kLongest));
  }
  if (const YamlNode* choice = find("amax_compute"))
    read_choice(*choice, problems, kAmaxChoices, products.most_recent);
  if (const YamlNode* margin = find("margin")) {
    products.margin = as_integer(*margin, problems).value_or(0);
    check_range(map, problems, "margin", static_cast<double>(products.margin), -kMargins, kMargins);
  }
}

constexpr std::array kTransposed{
    Choice<TransposedBlocks>{"copy", TransposedBlocks::copy},
    Choice<TransposedBlocks>{"requantise", TransposedBlocks::requantise}};

/// Another shape of blocks, or another way to their scales, for all roles that have powers of two.
void read_blocks(const YamlNode& node, ProblemList& problems, Precision& precision) {
  constexpr std::array kModes{ScaleMode::floor, ScaleMode::ceil, ScaleMode::even, ScaleMode::rceil};
  YamlMap map(node, problems);
  std::optional<std::array<std::int64_t, 2>> shape;
  if (const YamlNode* text = map.find("shape")) {
    shape = parse_block_shape(as_string(*text, problems).value_or(""));
    if (!shape)
      problems.add(text->where, "blocks are ROWSxCOLUMNS", "8x8, for example");
  }
  const YamlNode* scale = map.find("scale");
  ScaleMode mode = ScaleMode::floor;
  if (scale)
    read_choice(*scale, problems, choices_of(kModes), mode);
  read_choice(map, problems, "transposed", kTransposed, precision.transposed);
  map.finish();
  bool any = false;
  for (auto* type : {&precision.weights, &precision.activations, &precision.gradients,
                     &precision.optimizer_state, &precision.frozen_weights}) {
    if (!*type || !(*type)->format().blocks || (*type)->format().blocks->scale)
      continue;
    any = true;
    TensorFormat format = (*type)->format();
    if (shape) {
      format.blocks->rows = (*shape)[0];
      format.blocks->columns = (*shape)[1];
    }
    if (scale)
      format.blocks->mode = mode;
    *type = ElementType(format);
  }
  if (!any)
    problems.add(node.where, "no role has blocks with powers of two as scales",
                 "activations: mxfp8_e4m3, for example");
}

/// Units of products rather than casts to fp8. Roles that are left out have the forward one's.
bool read_units(const YamlNode& node, ProblemList& problems, StepArithmetic& arithmetic) {
  const auto is_map = [&](std::string_view key) {
    return std::ranges::any_of(node.entries, [&](const auto& entry) {
      return entry.key == key && entry.value.kind == YamlNode::Kind::map;
    });
  };
  if (node.kind != YamlNode::Kind::map ||
      !(is_map("forward") || is_map("input_gradient") || is_map("weight_gradient")))
    return false;
  YamlMap map(node, problems);
  const auto read = [&](std::string_view key, const std::optional<Mac>& otherwise) {
    const YamlNode* unit = map.find(key);
    return unit ? read_unit(*unit, problems) : otherwise;
  };
  arithmetic.forward = read("forward", std::nullopt);
  arithmetic.input_gradient = read("input_gradient", arithmetic.forward);
  arithmetic.weight_gradient = read("weight_gradient", arithmetic.forward);
  map.finish();
  return true;
}

/// An element type for all operands, or a map.
void read_products(const YamlNode& node, ProblemList& problems, Precision& precision) {
  if (read_units(node, problems, precision.arithmetic))
    return;
  ScaledProducts& products = precision.products.emplace();
  if (node.kind == YamlNode::Kind::scalar) {
    read_choice(node, problems, kFp8, products.forward);
    products.backward = products.forward;
    return;
  }
  YamlMap map(node, problems);
  read_choice(map, problems, "forward", kFp8, products.forward);
  read_choice(map, problems, "scaling", kScalings, products.scaling);
  if (const YamlNode* type = map.find("backward"))
    read_choice(*type, problems, kFp8, products.backward);
  else if (products.scaling == ScaledProducts::Scaling::block)
    products.backward = products.forward; // small blocks need no wider range
  read_history(map, problems, products);
  read_key(map, problems, "layers", read_patterns, products.layers);
  if (const YamlNode* keep = map.find("keep_first_and_last"))
    products.keep_first_and_last = as_boolean(*keep, problems).value_or(false);
  map.finish();
}

/// Rejects casts that would not make a tensor narrower.
void check_wider(const YamlNode& node, ProblemList& problems, const Precision& precision) {
  for (const auto& type : {precision.weights, precision.activations, precision.gradients}) {
    if (type && bits_of(*type) <= 8)
      problems.add(node.where,
                   fmt::format("'products' casts to fp8, and {} is not wider", name_of(*type)));
  }
}

} // namespace

void read_precision(const YamlNode& node, ProblemList& problems, Precision& precision) {
  if (node.kind == YamlNode::Kind::scalar) {
    std::optional<ElementType> type;
    read_named_type(node, problems, "precision", Formats::all, type);
    precision.weights = precision.activations = precision.gradients = precision.optimizer_state =
        type;
    return;
  }
  YamlMap map(node, problems);
  read_type(map, problems, "weights", Formats::all, precision.weights);
  read_type(map, problems, "activations", Formats::all, precision.activations);
  read_type(map, problems, "gradients", Formats::all, precision.gradients);
  read_type(map, problems, "weight_gradients", Formats::plain, precision.weight_gradients);
  read_type(map, problems, "optimizer_state", Formats::all, precision.optimizer_state);
  const YamlNode* sums = map.find("accumulate");
  if (sums && (sums->scalar == "int32" || sums->scalar == "int16"))
    precision.accumulate = *element_type_named(sums->scalar);
  else {
    std::optional<ElementType> type;
    read_type(map, problems, "accumulate", Formats::plain, type);
    precision.accumulate = type.value_or(precision.accumulate);
  }
  read_type(map, problems, "master_weights", Formats::plain, precision.master_weights);
  read_type(map, problems, "reductions", Formats::plain, precision.reductions);
  read_type(map, problems, "frozen_weights", Formats::all, precision.frozen_weights);
  const YamlNode* products = map.find("products");
  if (products && products->kind != YamlNode::Kind::null && products->scalar != "none") {
    read_products(*products, problems, precision);
    if (precision.products)
      check_wider(*products, problems, precision);
  }
  read_key(map, problems, "blocks", read_blocks, precision);
  read_key(map, problems, "rounding", read_results_rounding, precision.arithmetic.results);
  map.finish();
}

Precision read_precision_options(const YamlNode& node, ProblemList& problems) {
  Precision precision;
  read_precision(node, problems, precision);
  return precision;
}

} // namespace monet

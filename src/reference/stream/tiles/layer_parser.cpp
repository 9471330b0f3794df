// Converts operators to layers: the table of parsers and their shared functions. The network parser
// (network.cpp) calls parse_layers().
#include "reference/stream/tiles/layer_parser.hpp"

#include "workload/shared/operators.hpp"

#include <fmt/core.h>

#include <algorithm>

namespace monet::stream {

namespace {

/// A loop name that the layer does not use yet.
std::string unused_name(const std::vector<std::string>& taken, std::size_t number) {
  std::string name = fmt::format("E{}", number);
  while (std::ranges::find(taken, name) != taken.end())
    name += "_";
  return name;
}

} // namespace

ParsedLayer::ParsedLayer(const ParseContext& context, std::string type) {
  layer.type = lower_case(std::move(type));
  layer.name = context.op.name;
}

std::uint32_t ParsedLayer::loop(std::string name, std::int64_t size) {
  Dim dim;
  dim.name = std::move(name);
  dim.parsed = dim.size = dim.padded = dim.tile = std::max<std::int64_t>(size, 1);
  layer.dims.push_back(std::move(dim));
  return static_cast<std::uint32_t>(layer.dims.size() - 1);
}

std::vector<std::uint32_t> ParsedLayer::loops(const std::vector<std::string>& names,
                                              const Shape& sizes) {
  std::vector<std::uint32_t> indices;
  for (std::size_t i = 0; i < names.size(); ++i)
    indices.push_back(loop(names[i], sizes[i]));
  return indices;
}

std::uint32_t ParsedLayer::partial(PartialDim dim) {
  layer.partial.push_back(std::move(dim));
  return static_cast<std::uint32_t>(layer.dims.size() + layer.partial.size() - 1);
}

void ParsedLayer::operand(Operand operand, std::vector<std::uint32_t> axes) {
  layer.equation.push_back(operand);
  layer.use(operand).axes = std::move(axes);
}

void ParsedLayer::precision(Operand operand, int bits, int partial_bits) {
  OperandUse& use = layer.use(operand);
  use.bits = bits;
  use.partial_bits = partial_bits;
}

void ParsedLayer::constant(Operand operand) {
  layer.use(operand).source = Source::constant;
  layer.constants.push_back(operand);
}

void ParsedLayer::made_by(Operand operand, std::uint32_t node) {
  layer.use(operand).source = Source::layer;
  sources.push_back({operand, node});
}

std::string lower_case(std::string text) {
  for (char& c : text) {
    if (c >= 'A' && c <= 'Z')
      c = static_cast<char>(c - 'A' + 'a');
  }
  return text;
}

Shape input_shape(const ParseContext& context, std::size_t input) {
  const auto& inputs = context.op.inputs;
  return input < inputs.size() && inputs[input] ? context.graph.tensor(*inputs[input]).shape
                                                : Shape{};
}

Shape output_shape(const ParseContext& context) {
  const auto& outputs = context.op.outputs;
  return !outputs.empty() && outputs[0] ? context.graph.tensor(*outputs[0]).shape : Shape{};
}

void note(const ParseContext& context, std::string name, std::string what) {
  context.notes.push_back({std::move(name), context.op.name, std::move(what)});
}

std::vector<std::string> elementwise_names(const ParseContext& context, std::size_t rank) {
  std::vector<std::string> names =
      context.names.size() == rank ? context.names : std::vector<std::string>{"B", "H", "D", "K"};
  if (rank > names.size()) {
    note(context, "many-axes",
         fmt::format("{} axes, where the reference stops at {}", rank, names.size()));
  }
  while (names.size() < rank)
    names.push_back(unused_name(names, names.size() + 1));
  names.resize(rank);
  return names;
}

void set_precisions(const ParseContext& context, ParsedLayer& layer) {
  const Attributes& attributes = context.op.attributes;
  const auto bits = [&](const char* name, std::int64_t usual) {
    return static_cast<int>(std::clamp<std::int64_t>(attributes.integer(name, usual), 0, 4096));
  };
  const int activation = bits("act_size", 8);
  const int weight = bits("weight_size", 8);
  layer.precision(Operand::O, activation, bits("output_size", std::int64_t{2} * activation));
  layer.precision(Operand::I, activation, activation);
  const int second = context.predecessors.size() >= 2 ? activation : weight;
  layer.precision(Operand::W, second, second);
}

void set_sources(const ParseContext& context, ParsedLayer& layer, std::size_t input) {
  const auto& made = context.predecessors;
  if (made.size() > 2) {
    note(
        context, "many-inputs",
        fmt::format("{} inputs are results of other nodes; only the first two count", made.size()));
  }
  if (made.size() >= 2)
    layer.made_by(Operand::W, made[1 - input]);
  else
    layer.constant(Operand::W);
  if (made.empty())
    layer.constant(Operand::I);
  else
    layer.made_by(Operand::I, made[std::min(made.size() - 1, input)]);
}

std::vector<ParsedLayer> parse_layers(const ParseContext& context) {
  using Parser = ParsedLayer (*)(const ParseContext&);
  constexpr std::pair<std::string_view, Parser> kParsers[] = {
      {"QLinearConv", parse_conv},       {"Conv", parse_conv},
      {"MatMul", parse_product},         {"Gemm", parse_product},
      {"Einsum", parse_einsum},          {"MaxPool", parse_pool},
      {"AveragePool", parse_pool},       {"GlobalMaxPool", parse_pool},
      {"GlobalAveragePool", parse_pool}, {"Add", parse_two_inputs},
      {"Mul", parse_two_inputs},         {"Exp", parse_one_input},
      {"ReduceMean", parse_reduction},   {"Relu", parse_one_input},
      {"Gelu", parse_one_input},         {"Silu", parse_one_input},
      {"Sigmoid", parse_one_input},      {"Sqrt", parse_one_input},
      {"Div", parse_one_input},          {"Pow", parse_one_input},
      {"Reciprocal", parse_one_input},
  };
  // The reference selects by operator type only, regardless of the domain.
  std::vector<ParsedLayer> layers;
  if (has_trait(context.op.op_type, OperatorRow::kProbabilities))
    layers = parse_softmax(context);
  for (const auto& [type, parser] : kParsers) {
    if (context.op.op_type == type)
      layers.push_back(parser(context));
  }
  for (ParsedLayer& parsed : layers) {
    if (parsed.layer.dims.empty())
      parsed.loop("B", 1); // scalar: every layer needs a loop
  }
  return layers;
}

} // namespace monet::stream

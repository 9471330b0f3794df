// Parses element-wise operators, reductions over the last axis and softmax (four layers) into
// layers. The table of parsers (layer_parser.cpp) calls this.
#include "reference/stream/tiles/layer_parser.hpp"

#include <fmt/core.h>

#include <algorithm>

namespace monet::stream {

namespace {

Shape shape_at(const ParseContext& context, TensorId tensor) {
  return context.graph.tensor(tensor).shape;
}

/// Sets the operands of a layer whose I and O have every axis.
void full_operands(ParsedLayer& layer, const std::vector<std::uint32_t>& axes,
                   std::vector<std::uint32_t> weight) {
  layer.operand(Operand::O, axes);
  layer.operand(Operand::I, axes);
  layer.operand(Operand::W, std::move(weight));
}

/// The nodes that make I and W, where W is the operand with the broadcast shape.
std::pair<std::uint32_t, std::uint32_t> broadcast_sources(const ParseContext& context,
                                                          const Shape& broadcast) {
  const auto& made = context.predecessors;
  std::uint32_t weight = made[0];
  std::size_t position = 0; // among the predecessors
  for (const std::optional<TensorId>& input : context.op.inputs) {
    if (!input || !context.graph.tensor(*input).producer)
      continue;
    if (shape_at(context, *input) == broadcast) {
      weight = made[position];
      break;
    }
    ++position;
  }
  const auto other = std::ranges::find_if(made, [&](std::uint32_t node) { return node != weight; });
  return {weight, other == made.end() ? weight : *other};
}

/// A reduction over the last axis. If the axis is kept, O has the axis R of size 1 in its place.
ParsedLayer reduction(const ParseContext& context, const char* type, bool keeps_axis,
                      std::size_t axis) {
  ParsedLayer layer(context, type);
  const Shape input = input_shape(context, 0);
  const std::vector<std::uint32_t> full =
      layer.loops(elementwise_names(context, input.size()), input);
  std::vector<std::uint32_t> reduced = full;
  if (keeps_axis) {
    const std::uint32_t r = layer.loop("R", 1);
    if (!reduced.empty())
      reduced[axis] = r;
  } else if (!reduced.empty()) {
    reduced.erase(reduced.begin() + static_cast<std::ptrdiff_t>(axis));
  }
  layer.operand(Operand::O, reduced);
  layer.operand(Operand::I, full);
  layer.operand(Operand::W, {});
  set_precisions(context, layer);
  layer.constant(Operand::W);
  if (context.predecessors.empty()) {
    note(context, "reduced-input", "reduces an input of the network");
    layer.constant(Operand::I);
  } else {
    layer.made_by(Operand::I, context.predecessors[0]);
  }
  return layer;
}

} // namespace

ParsedLayer parse_one_input(const ParseContext& context) {
  ParsedLayer layer(context, context.op.op_type.str());
  const Shape output = output_shape(context);
  if (input_shape(context, 0) != output)
    note(context, "broadcast", "the first input has another shape than the result");
  const std::vector<std::uint32_t> axes =
      layer.loops(elementwise_names(context, output.size()), output);
  // W is a scalar only with one predecessor; otherwise it has all axes, as in the reference.
  full_operands(layer, axes,
                context.predecessors.size() == 1 ? std::vector<std::uint32_t>{} : axes);
  set_precisions(context, layer);
  set_sources(context, layer, 1);
  return layer;
}

ParsedLayer parse_two_inputs(const ParseContext& context) {
  ParsedLayer layer(context, context.op.op_type.str());
  const Shape output = output_shape(context);
  const Shape first = input_shape(context, 0);
  const Shape second = input_shape(context, 1);
  if (first != output && second != output)
    note(context, "mutual-broadcast", "no input has the shape of the result");
  const Shape broadcast = first == output ? second : first;
  const std::vector<std::uint32_t> axes =
      layer.loops(elementwise_names(context, output.size()), output);
  const std::size_t rank = std::min(broadcast.size(), axes.size());
  full_operands(layer, axes, {axes.end() - static_cast<std::ptrdiff_t>(rank), axes.end()});
  set_precisions(context, layer);
  if (context.predecessors.size() >= 2) {
    const auto [weight, input] = broadcast_sources(context, broadcast);
    layer.made_by(Operand::W, weight);
    layer.made_by(Operand::I, input);
  } else {
    set_sources(context, layer, 1);
  }
  return layer;
}

ParsedLayer parse_reduction(const ParseContext& context) {
  const Shape input = input_shape(context, 0);
  const Shape output = output_shape(context);
  const bool keeps_axis = input.size() == output.size();
  std::size_t axis = input.empty() ? 0 : input.size() - 1;
  std::size_t different = 0;
  for (std::size_t i = 0; keeps_axis && i < input.size(); ++i) {
    if (input[i] != output[i]) {
      axis = i;
      ++different;
    }
  }
  if (!keeps_axis || different > 1 || (!input.empty() && axis + 1 != input.size()))
    note(context, "reduction-axis", "the reference reduces the last axis only, and keeps it");
  return reduction(context, "reducemean", keeps_axis, axis);
}

std::vector<ParsedLayer> parse_softmax(const ParseContext& context) {
  const Shape shape = input_shape(context, 0);
  const std::uint32_t max = context.node;
  const std::uint32_t exp = max + 1;
  const std::uint32_t sum = max + 2;
  // exp(I - max) and e / sum: W has R of size 1 in place of the last axis.
  const auto rescale = [&](const char* type, std::optional<std::uint32_t> input,
                           std::uint32_t weight) {
    ParsedLayer layer(context, type);
    const std::vector<std::uint32_t> axes =
        layer.loops(elementwise_names(context, shape.size()), shape);
    std::vector<std::uint32_t> weight_axes = axes;
    const std::uint32_t r = layer.loop("R", 1);
    if (!weight_axes.empty())
      weight_axes.back() = r;
    full_operands(layer, axes, std::move(weight_axes));
    set_precisions(context, layer);
    if (input)
      layer.made_by(Operand::I, *input);
    else
      layer.constant(Operand::I);
    layer.made_by(Operand::W, weight);
    return layer;
  };
  const std::size_t last = shape.empty() ? 0 : shape.size() - 1;
  std::vector<ParsedLayer> layers;
  layers.push_back(reduction(context, "max", true, last));
  const auto& made = context.predecessors;
  layers.push_back(rescale("exp", made.empty() ? std::nullopt : std::optional(made[0]), max));
  ParsedLayer total = reduction(context, "sum", true, last);
  total.sources = {{Operand::I, exp}};
  total.layer.use(Operand::I).source = Source::layer;
  total.layer.constants = {Operand::W};
  layers.push_back(std::move(total));
  layers.push_back(rescale("div", exp, sum));
  for (ParsedLayer& layer : layers)
    layer.layer.name = fmt::format("{}-{}/", context.op.name, layer.layer.type);
  return layers;
}

} // namespace monet::stream

// Parses convolutions, pooling and matrix products into layers. The table of parsers
// (layer_parser.cpp) calls this.
#include "reference/stream/tiles/layer_parser.hpp"
#include "workload/shared/op_types.hpp"

#include <fmt/core.h>

#include <algorithm>

namespace monet::stream {

namespace {

/// Letters of spatial axes in ONNX's order; the reference calls ONNX's height X.
constexpr std::array<char, 6> kAxisLetters{'X', 'Y', 'Z', 'U', 'V', 'T'};

struct Window {
  Shape kernel, strides, dilations, pads;
};

Shape attribute(const ParseContext& context, const char* name, std::size_t count,
                std::int64_t fallback) {
  Shape values = context.op.attributes.integers(name);
  values.resize(count, fallback);
  return values;
}

/// The window of a convolution or pooling. As in the reference, auto_pad is ignored.
Window window_of(const ParseContext& context, Shape kernel) {
  Window window;
  const std::size_t rank = kernel.size();
  window.kernel = std::move(kernel);
  window.strides = attribute(context, "strides", rank, 1);
  window.dilations = attribute(context, "dilations", rank, 1);
  window.pads = attribute(context, "pads", 2 * rank, 0);
  const std::string automatic = context.op.attributes.text("auto_pad", "NOTSET");
  if (automatic != "NOTSET" && automatic != "VALID" && !automatic.empty())
    note(context, "auto-pad", fmt::format("auto_pad {} counts as no padding", automatic));
  return window;
}

std::string named(char prefix, std::size_t axis) {
  return {prefix, kAxisLetters[axis]};
}

/// Loops OX, ... and FX, ... by axis, and the axes IX, ... that they index.
struct Spatial {
  std::vector<std::uint32_t> out, kernel, in;

  void add_partial(ParsedLayer& layer, const Window& window, const Shape& input) {
    for (std::size_t i = 0; i < out.size(); ++i) {
      PartialDim dim;
      dim.name = named('I', i);
      dim.dims = {out[i], kernel[i]};
      dim.coefficients = {window.strides[i], window.dilations[i]};
      dim.pad_begin = window.pads[i];
      dim.pad_end = window.pads[i + out.size()];
      dim.size = input.size() > i + 2 ? input[i + 2] : 1;
      in.push_back(layer.partial(std::move(dim)));
    }
  }
};

/// Axes of an operand in the equation: leading axes, then spatial axes with Y before X.
std::vector<std::uint32_t> with_spatial(std::vector<std::optional<std::uint32_t>> leading,
                                        const std::vector<std::uint32_t>& spatial) {
  std::vector<std::uint32_t> axes;
  for (const std::optional<std::uint32_t>& axis : leading) {
    if (axis)
      axes.push_back(*axis);
  }
  axes.insert(axes.end(), spatial.rbegin(), spatial.rend());
  return axes;
}

/// The shape extended or cut to two leading axes and 1 to 6 spatial axes; a change is noted.
Shape image_shape(const ParseContext& context, Shape shape) {
  if (shape.size() < 3 || shape.size() > 2 + kAxisLetters.size()) {
    note(context, "image-rank",
         fmt::format("{} axes, where the reference expects 3 or 4", shape.size()));
    shape.resize(std::clamp<std::size_t>(shape.size(), 3, 2 + kAxisLetters.size()), 1);
  }
  return shape;
}

} // namespace

ParsedLayer parse_conv(const ParseContext& context) {
  ParsedLayer layer(context, "conv");
  const Shape input = image_shape(context, input_shape(context, 0));
  const Shape output = image_shape(context, output_shape(context));
  const std::size_t rank = output.size() - 2;
  Shape kernel = context.op.attributes.integers("kernel_shape");
  if (kernel.size() != rank) {
    const Shape weight = input_shape(context, context.op.op_type == ops::QLinearConv ? 3 : 1);
    kernel.assign(weight.size() > 2 ? weight.begin() + 2 : weight.end(), weight.end());
    kernel.resize(rank, 1);
    note(context, "kernel-shape", "no kernel_shape: the weight's shape is used");
  }
  if (rank > 2)
    note(context, "image-rank", fmt::format("{} spatial axes", rank));
  const Window window = window_of(context, kernel);
  const std::int64_t groups = std::max<std::int64_t>(context.op.attributes.integer("group", 1), 1);
  const std::int64_t k_size = (output[1] + groups - 1) / groups;
  const std::int64_t c_size = (input[1] + groups - 1) / groups;

  // The loop order is the reference's, because it determines the loop that is cut by default.
  Spatial spatial;
  std::optional<std::uint32_t> k, c;
  const std::uint32_t b = layer.loop("B", output[0]);
  if (k_size != 1)
    k = layer.loop("K", k_size);
  const std::uint32_t g = layer.loop("G", groups);
  for (std::size_t i = 0; i < rank; ++i) {
    spatial.out.push_back(layer.loop(named('O', i), output[2 + i]));
    if (i == 0 && c_size != 1)
      c = layer.loop("C", c_size);
    spatial.kernel.push_back(layer.loop(named('F', i), kernel[i]));
  }
  spatial.add_partial(layer, window, input);
  layer.operand(Operand::O, with_spatial({b, g, k}, spatial.out));
  layer.operand(Operand::W, with_spatial({groups > 1 ? std::optional(g) : k, c}, spatial.kernel));
  layer.operand(Operand::I, with_spatial({b, g, c}, spatial.in));
  set_precisions(context, layer);
  set_sources(context, layer, 0);
  return layer;
}

ParsedLayer parse_pool(const ParseContext& context) {
  ParsedLayer layer(context, "pooling");
  const Shape input = image_shape(context, input_shape(context, 0));
  Shape output = image_shape(context, output_shape(context));
  output.resize(input.size(), 1);
  const std::size_t rank = input.size() - 2;
  if (rank != 2)
    note(context, "image-rank", fmt::format("pooling over {} spatial axes", rank));
  Shape kernel = context.op.attributes.integers("kernel_shape");
  if (kernel.size() != rank)
    kernel.assign(input.begin() + 2, input.end());
  const Window window = window_of(context, kernel);

  Spatial spatial;
  const std::uint32_t b = layer.loop("B", output[0]);
  const std::uint32_t k = layer.loop("K", output[1]);
  for (std::size_t i = 0; i < rank; ++i)
    spatial.out.push_back(layer.loop(named('O', i), output[2 + i]));
  if (context.pools_channels_twice)
    layer.loop("C", input[1]); // in no operand: the reference counts channels twice
  for (std::size_t i = 0; i < rank; ++i)
    spatial.kernel.push_back(layer.loop(named('F', i), kernel[i]));
  spatial.add_partial(layer, window, input);
  layer.operand(Operand::O, with_spatial({b, k}, spatial.out));
  layer.operand(Operand::W, with_spatial({}, spatial.kernel));
  layer.operand(Operand::I, with_spatial({b, k}, spatial.in));
  layer.precision(Operand::O, 8, 8);
  layer.precision(Operand::I, 8, 8);
  layer.precision(Operand::W, 0, 0);
  // An image without a predecessor has no source and is never fetched, as in the reference.
  if (!context.predecessors.empty())
    layer.made_by(Operand::I, context.predecessors[0]);
  layer.constant(Operand::W);
  return layer;
}

ParsedLayer parse_product(const ParseContext& context) {
  ParsedLayer layer(context, context.op.op_type.str());
  Shape input = input_shape(context, 0);
  Shape output = output_shape(context);
  if (input.size() < 2 || output.size() < 2) {
    note(context, "vector-product", "a vector counts as a matrix of one row");
    while (input.size() < 2)
      input.insert(input.begin(), 1);
    while (output.size() < 2)
      output.insert(output.begin(), 1);
  }
  std::int64_t inner = input.back();
  const std::int64_t rows = output[output.size() - 2];
  if (input[input.size() - 2] != rows) {
    const bool transposed = context.op.attributes.integer("transA", 0) != 0;
    if (transposed)
      inner = input[input.size() - 2];
    note(context, "product-rows",
         transposed ? "transA: the reference mistakes rows for columns"
                    : "rows of input and result differ");
  }
  std::vector<std::string> names = context.names.size() >= output.size() + 1
                                       ? context.names
                                       : std::vector<std::string>{"B", "H", "D", "C", "K"};
  const std::size_t batch_axes = input.size() - 2;
  if (batch_axes + 3 > names.size()) {
    note(context, "many-axes", fmt::format("a product over {} batch axes", batch_axes));
    for (std::size_t i = names.size() - 3; i < batch_axes; ++i)
      names.insert(names.end() - 3, fmt::format("E{}", i));
  }
  const std::vector<std::uint32_t> batch =
      layer.loops({names.begin(), names.begin() + static_cast<std::ptrdiff_t>(batch_axes)},
                  {input.begin(), input.end() - 2});
  const std::uint32_t d = layer.loop(names[names.size() - 3], rows);
  const std::uint32_t c = layer.loop(names[names.size() - 2], inner);
  const std::uint32_t k = layer.loop(names[names.size() - 1], output.back());
  const auto after_batch = [&](bool with_batch, std::uint32_t first, std::uint32_t second) {
    std::vector<std::uint32_t> axes = with_batch ? batch : std::vector<std::uint32_t>{};
    axes.insert(axes.end(), {first, second});
    return axes;
  };
  layer.operand(Operand::O, after_batch(true, d, k));
  layer.operand(Operand::I, after_batch(true, d, c));
  layer.operand(Operand::W, after_batch(context.predecessors.size() >= 2, c, k));
  set_precisions(context, layer);
  set_sources(context, layer, 0);
  return layer;
}

} // namespace monet::stream

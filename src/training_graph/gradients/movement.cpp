// Operators that rearrange, repeat, interpolate or sample: Tile, DepthToSpace, SpaceToDepth, Trilu,
// Resize, GridSample, RoiAlign. Sources of random numbers, which no gradient passes: their shapes
// and seeds are all that they take from their inputs.
#include "training_graph/gradients/rules.hpp"
#include "workload/shared/op_types.hpp"

namespace monet {

namespace {

/// Views every repetition in dY as a separate axis and sums over these axes.
void tile(GradientContext& context) {
  const Integers shape = context.input_shape(0);
  const Integers whole = context.dy_shape();
  Integers split_shape;
  Integers axes;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (whole[i] != shape[i]) {
      axes.push_back(static_cast<std::int64_t>(split_shape.size()));
      split_shape.push_back(whole[i] / std::max<std::int64_t>(shape[i], 1));
    }
    split_shape.push_back(shape[i]);
  }
  if (axes.empty()) {
    context.give(0, context.dy());
    return;
  }
  const TensorId parts = context.reshape(context.dy(), split_shape);
  context.emit({ops::ReduceSum, {parts, context.integers(axes)}, {{"keepdims", std::int64_t{0}}}});
}

/// The other direction. ONNX has no SpaceToDepth for mode CRD: three views do the same.
void depth_to_space(GradientContext& context) {
  const std::int64_t block = context.op().attributes.integer("blocksize", 1);
  if (context.op().attributes.text("mode", "DCR") != "CRD") {
    context.emit({ops::SpaceToDepth, {context.dy()}, {{"blocksize", block}}});
    return;
  }
  const Integers deep = context.input_shape(0); // [N, C*b*b, H, W]
  const std::int64_t channels = deep[1] / (block * block);
  const TensorId parts =
      context.reshape(context.dy(), {deep[0], channels, deep[2], block, deep[3], block});
  const Integers order{0, 1, 3, 5, 2, 4};
  const TensorId turned = context.emit_value({ops::Transpose, {parts}, {{"perm", order}}},
                                             {deep[0], channels, block, block, deep[2], deep[3]});
  context.give(0, context.reshape(turned, deep));
}
void space_to_depth(GradientContext& context) {
  const std::int64_t block = context.op().attributes.integer("blocksize", 1);
  context.emit(
      {ops::DepthToSpace, {context.dy()}, {{"blocksize", block}, {"mode", std::string("DCR")}}});
}

/// Keeps the triangle of dY that the forward operator kept.
void trilu(GradientContext& context) {
  GradientContext::Emit what{ops::Trilu, {context.dy()}, context.op().attributes};
  if (context.has_input(1))
    what.inputs.emplace_back(context.input(1));
  context.emit(std::move(what));
}

const std::vector<double>* known_numbers(const Graph& graph, const Operator& op,
                                         std::size_t input) {
  const bool has = input < op.inputs.size() && op.inputs[input];
  return has ? reals_of(graph.tensor(*op.inputs[input]).values) : nullptr;
}

/// Every element of dY is shared out to the elements it was interpolated from.
void resize(GradientContext& context) {
  GradientContext::Emit what{ops::ResizeGrad, {context.dy()}, context.op().attributes};
  if (const auto* scales = known_numbers(context.graph(), context.op(), 2);
      scales != nullptr && !scales->empty())
    what.attributes.set("scales", *scales);
  context.emit(std::move(what));
}
std::string refuse_resize(const Graph& graph, const Operator& op) {
  const bool computed = op.inputs.size() > 2 && op.inputs[2] &&
                        graph.tensor(*op.inputs[2]).shape != Integers{0} &&
                        known_numbers(graph, op, 2) == nullptr;
  if (computed)
    return "Resize has a gradient only when its scales are constants";
  if (op.attributes.text("coordinate_transformation_mode", "") == "tf_crop_and_resize")
    return "Resize has no gradient with 'tf_crop_and_resize'";
  return {};
}

// Samples between the pixels of an image: to the image by the weights they were made with, and to
// the places of a grid by the slopes there. Regions receive nothing, as in PyTorch.

void grid_sample(GradientContext& context) {
  const Attributes attributes = context.op().attributes;
  if (context.wants(0))
    context.emit({ops::GridSampleGradInput, {context.dy(), context.input(1)}, attributes});
  if (!context.wants(1))
    return;
  if (attributes.text("mode", "bilinear") == "nearest") { // constant nearly everywhere
    context.give(1, context.expand(context.scalar(0.0), context.input_shape(1)));
    return;
  }
  context.emit(
      {ops::GridSampleGradGrid, {context.dy(), context.input(0), context.input(1)}, attributes},
      {1});
}

/// A maximum's sample is found again, which takes X.
void roi_align(GradientContext& context) {
  const Attributes attributes = context.op().attributes;
  GradientContext::Emit gradient{
      ops::RoiAlignGrad, {context.dy(), context.input(1), context.input(2)}, attributes};
  if (attributes.text("mode", "avg") == "max")
    gradient.inputs.emplace_back(context.input(0));
  context.emit(std::move(gradient));
}

} // namespace

std::vector<GradientRule> movement_gradients() {
  return {
      {ops::Tile, tile},
      {ops::DepthToSpace, depth_to_space},
      {ops::SpaceToDepth, space_to_depth},
      {ops::Trilu, trilu},
      {ops::Resize, resize, refuse_resize},
      {ops::GridSample, grid_sample},
      {.op_type = ops::RoiAlign, .emit = roi_align, .differentiable_inputs = 1},
  };
}

} // namespace monet

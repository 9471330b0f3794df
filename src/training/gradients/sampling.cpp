// Samples between the pixels of an image: to the image by the weights they were made with, and to
// the places of a grid by the slopes there. Regions receive nothing, as in PyTorch.
#include "training/gradients/rules.hpp"

namespace monet {

namespace {

void grid_sample(GradientContext& context) {
  const Attributes attributes = context.op().attributes;
  if (context.wants(0))
    context.emit({"GridSampleGradInput", {context.dy(), context.input(1)}, attributes});
  if (!context.wants(1))
    return;
  if (attributes.text("mode", "bilinear") == "nearest") { // constant nearly everywhere
    context.give(1, context.expand(context.scalar(0.0), context.input_shape(1)));
    return;
  }
  context.emit(
      {"GridSampleGradGrid", {context.dy(), context.input(0), context.input(1)}, attributes}, {1});
}

/// A maximum's sample is found again, which takes X.
void roi_align(GradientContext& context) {
  const Attributes attributes = context.op().attributes;
  GradientContext::Emit gradient{
      "RoiAlignGrad", {context.dy(), context.input(1), context.input(2)}, attributes};
  if (attributes.text("mode", "avg") == "max")
    gradient.inputs.emplace_back(context.input(0));
  context.emit(std::move(gradient));
}

} // namespace

std::vector<GradientRule> sampling_gradients() {
  return {
      {"GridSample", grid_sample},
      {.op_type = "RoiAlign", .emit = roi_align, .differentiable_inputs = 1},
  };
}

} // namespace monet

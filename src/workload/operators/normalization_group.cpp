// Rules of normalisations with statistics per sample, and of their gradients: over groups of
// channels (InstanceNorm has one channel per group), and by the root mean square of a row
// (RMSNorm).
#include "workload/operators/families.hpp"

#include <fmt/core.h>

#include <array>

namespace monet {

namespace {

// Order of work: add, multiply, divide, compare, square_root, transcendental; per element.
constexpr VectorWork kGroupForward{5, 4, 0, 0, 0, 0};    // sum, sum of squares; (x-m)*i, *g, +b
constexpr VectorWork kGroupBackward{6, 6, 0, 0, 0, 0};   // g*dy, xhat, two sums; dx
constexpr VectorWork kGroupParameters{3, 2, 0, 0, 0, 0}; // xhat; dy*xhat; two sums
constexpr VectorWork kRms{1, 3, 0, 0, 0, 0};             // sum of squares; x*r, *g
constexpr VectorWork kRmsBackward{2, 5, 0, 0, 0, 0};     // g*dy, x*r, sum; dx
constexpr VectorWork kRmsParameters{1, 2, 0, 0, 0, 0};   // dy*x*r; sum

/// Loops over [N, groups, channels of a group, positions...], and the operands' axes over them.
struct GroupLoops {
  std::vector<AxisExpr> data;       ///< [N, C, positions...]
  std::vector<AxisExpr> statistics; ///< [N, groups]
  AxisExpr channel;
};

std::int64_t groups_of(const Graph& graph, const Operator& op, std::int64_t channels) {
  const std::int64_t groups = op.attributes.integer("num_groups", channels);
  if (groups < 1 || channels % groups != 0) {
    fail(graph, op, fmt::format("{} channels are not a multiple of {} groups", channels, groups),
         "attribute 'num_groups'");
  }
  return groups;
}

/// Adds the loops; statistics cover the coupled ones: channels of a group and all positions.
GroupLoops add_loops(const Graph& graph, const Operator& op, LoopNestBuilder& nest) {
  const auto& shape = input_shape(graph, op, 0);
  if (shape.size() < 2)
    fail(graph, op, "a channel axis is needed");
  const std::int64_t groups = groups_of(graph, op, shape[1]);
  const std::int64_t members = groups == 0 ? 0 : shape[1] / groups;
  GroupLoops loops;
  const LoopIndex n = nest.loop("N", shape[0]);
  const LoopIndex g = nest.loop("G", groups);
  loops.channel = axis(g);
  if (members != 1) {
    const LoopIndex c = nest.loop("C", members);
    nest.couple(c);
    loops.channel = axis_sum({{g, members}, {c, 1}});
  }
  loops.statistics = {axis(n), axis(g)};
  loops.data = {axis(n), loops.channel};
  const std::vector<std::string> names = axis_names(shape.size() < 4 ? 4 : shape.size());
  for (std::size_t i = 2; i < shape.size(); ++i) {
    const LoopIndex place = nest.loop(names[i], shape[i]);
    nest.couple(place);
    loops.data.push_back(axis(place));
  }
  return loops;
}

/// Adds a scale or bias, if present: one value per channel, or per group in opset 18.
void add_per_channel(const Graph& graph, const Operator& op, LoopNestBuilder& nest,
                     std::size_t input, std::string role, const GroupLoops& loops) {
  if (!has_input(op, input))
    return;
  const auto& data = input_shape(graph, op, 0);
  const auto& shape = input_shape(graph, op, input);
  const std::int64_t groups = groups_of(graph, op, data[1]);
  const bool per_group = shape.size() == 1 && shape[0] == groups && groups != data[1];
  nest.input(input, std::move(role), {per_group ? loops.statistics[1] : loops.channel});
}

/// Loops over the first input; those that `statistics` lacks are coupled.
std::vector<LoopIndex> row_loops(const Graph& graph, const Operator& op, LoopNestBuilder& nest) {
  const auto& shape = input_shape(graph, op, 0);
  const std::size_t first = normal_axis(graph, op, op.attributes.integer("axis", -1), shape.size());
  const std::vector<LoopIndex> loops = nest.loops_over(shape);
  for (std::size_t d = first; d < loops.size(); ++d)
    nest.couple(loops[d]);
  return loops;
}

} // namespace

/// (X, scale, bias) -> (Y, mean, inverse standard deviation); the last two are [N, groups].
LoopNest build_group_norm(const Graph& graph, const Operator& op) {
  LoopNestBuilder nest(graph, op, ComputeKind::vector, kGroupForward);
  const GroupLoops loops = add_loops(graph, op, nest);
  nest.output(0, "O", loops.data);
  nest.outputs(1, {"mean", "inv_std"}, loops.statistics);
  nest.input(0, "I", loops.data, 2);
  add_per_channel(graph, op, nest, 1, "scale", loops);
  add_per_channel(graph, op, nest, 2, "bias", loops);
  return nest.finish();
}

/// (dY, X, scale, mean, inverse standard deviation) -> dX.
LoopNest build_group_norm_grad(const Graph& graph, const Operator& op) {
  LoopNestBuilder nest(graph, op, ComputeKind::vector, kGroupBackward);
  const GroupLoops loops = add_loops(graph, op, nest);
  nest.output(0, "O", loops.data);
  nest.inputs(0, {"I", "W"}, loops.data, 2);
  add_per_channel(graph, op, nest, 2, "scale", loops);
  nest.inputs(3, {"mean", "inv_std"}, loops.statistics);
  return nest.finish();
}

/// (dY, X, mean, inverse standard deviation) -> (dscale, dbias), summed over samples and positions.
LoopNest build_group_norm_grad_weight(const Graph& graph, const Operator& op) {
  LoopNestBuilder nest(graph, op, ComputeKind::vector, kGroupParameters);
  const auto& shape = input_shape(graph, op, 0);
  if (shape.size() < 2)
    fail(graph, op, "a channel axis is needed");
  const std::int64_t groups = groups_of(graph, op, shape[1]);
  const LoopIndex n = nest.loop("N", shape[0]);
  const LoopIndex g = nest.loop("G", groups);
  const LoopIndex c = nest.loop("C", shape[1] / groups);
  const AxisExpr channel = axis_sum({{g, shape[1] / groups}, {c, 1}});
  std::vector<AxisExpr> data{axis(n), channel};
  const std::vector<std::string> names = axis_names(shape.size() < 4 ? 4 : shape.size());
  for (std::size_t i = 2; i < shape.size(); ++i)
    data.push_back(axis(nest.loop(names[i], shape[i])));
  constexpr std::array kOutputs{"O", "O2"};
  for (std::size_t i = 0; i < kOutputs.size(); ++i) {
    if (!has_output(op, i))
      continue;
    const bool per_group = output_shape(graph, op, i)[0] == groups && groups != shape[1];
    nest.output(i, kOutputs[i], {per_group ? axis(g) : channel});
  }
  nest.inputs(0, {"I", "W"}, data);
  nest.inputs(2, {"mean", "inv_std"}, {axis(n), axis(g)});
  return nest.finish();
}

/// (X, scale) -> (Y, 1 / root mean square); the latter has size 1 on normalised axes.
LoopNest build_rms_norm(const Graph& graph, const Operator& op) {
  LoopNestBuilder nest(graph, op, ComputeKind::vector, kRms);
  const std::vector<LoopIndex> loops = row_loops(graph, op, nest);
  nest.output(0, "O", axes_of(loops));
  nest.outputs_over(loops, 1, {"inv_std"});
  nest.input(0, "I", axes_of(loops), 2);
  nest.inputs_over(loops, 1, {"scale"});
  return nest.finish();
}

/// (dY, X, scale, 1 / root mean square) -> dX.
LoopNest build_rms_norm_grad(const Graph& graph, const Operator& op) {
  LoopNestBuilder nest(graph, op, ComputeKind::vector, kRmsBackward);
  const std::vector<LoopIndex> loops = row_loops(graph, op, nest);
  nest.output(0, "O", axes_of(loops));
  nest.inputs(0, {"I", "W"}, axes_of(loops), 2);
  nest.inputs_over(loops, 2, {"scale", "inv_std"});
  return nest.finish();
}

/// (dY, X, 1 / root mean square) -> dscale, summed over rows.
LoopNest build_rms_norm_grad_weight(const Graph& graph, const Operator& op) {
  LoopNestBuilder nest(graph, op, ComputeKind::vector, kRmsParameters);
  const std::vector<LoopIndex> loops = nest.loops_over(input_shape(graph, op, 0));
  nest.output(0, "O", nest.broadcast(output_shape(graph, op, 0), loops));
  nest.inputs(0, {"I", "W"}, axes_of(loops));
  nest.inputs_over(loops, 2, {"inv_std"});
  return nest.finish();
}

} // namespace monet

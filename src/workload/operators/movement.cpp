// Rules of operators that move data and are not views: their output is new storage.
#include "workload/operators/families.hpp"

#include <fmt/core.h>

namespace monet {

/// Concat: each input is read where the output's index is in its part; clipping of the access
/// expresses this.
LoopNest build_concat(const Graph& graph, const Operator& op) {
  const auto& out = output_shape(graph, op, 0);
  const std::size_t at = normal_axis(graph, op, op.attributes.integer("axis", 0), out.size());
  LoopNestBuilder nest(graph, op, ComputeKind::copy);
  const std::vector<LoopIndex> loops = nest.loops_over(out);
  nest.output(0, "O", axes_of(loops));
  std::int64_t begin = 0;
  for (std::size_t i = 0; i < op.inputs.size(); ++i) {
    const auto& part = input_shape(graph, op, i);
    if (part.size() != out.size())
      fail(graph, op, fmt::format("input {} has other axes", i));
    std::vector<AxisExpr> from = axes_of(loops);
    from[at].offset = -begin;
    nest.padded_input(i, i == 0 ? "I" : fmt::format("I{}", i), std::move(from));
    begin += part[at];
  }
  return nest.finish();
}

LoopNest build_pad(const Graph& graph, const Operator& op) {
  const auto& out = output_shape(graph, op, 0);
  const auto pads = known_integers(graph, op, 1);
  LoopNestBuilder nest(graph, op, ComputeKind::copy);
  const std::vector<LoopIndex> loops = nest.loops_over(out);
  nest.output(0, "O", axes_of(loops));
  if (!pads || op.attributes.text("mode", "constant") != "constant") {
    nest.opaque_input(0, "I"); // reflected or repeated borders, or pads known only from shapes
    return nest.finish();
  }
  if (pads->size() != 2 * out.size())
    fail(graph, op, "two values per axis are expected", "input 1");
  std::vector<AxisExpr> from = axes_of(loops);
  for (std::size_t i = 0; i < from.size(); ++i)
    from[i].offset = -(*pads)[i];
  nest.padded_input(0, "I", std::move(from));
  return nest.finish();
}

/// (dY) -> dX of a Pad that reflects or repeats borders: border elements receive several gradients.
LoopNest build_pad_grad(const Graph& graph, const Operator& op) {
  LoopNestBuilder nest(graph, op, ComputeKind::vector, VectorWork{1, 0, 0, 0, 0, 0});
  nest.loops_over(input_shape(graph, op, 0));
  nest.opaque_output(0, "O", AccessMode::accumulate);
  nest.opaque_input(0, "I");
  return nest.finish();
}

/// (dY) -> dX of a Slice: element i of an axis goes to start + step * i; all others are zero.
LoopNest build_slice_grad(const Graph& graph, const Operator& op) {
  const auto& dy = input_shape(graph, op, 0);
  const auto starts = op.attributes.integers("starts");
  const auto steps = op.attributes.integers("steps");
  if (starts.size() != dy.size() || steps.size() != dy.size())
    fail(graph, op, "one start and one step per axis are expected");
  LoopNestBuilder nest(graph, op, ComputeKind::copy);
  const std::vector<LoopIndex> loops = nest.loops_over(dy);
  std::vector<AxisExpr> to;
  for (std::size_t i = 0; i < dy.size(); ++i)
    to.push_back(axis(loops[i], steps[i], starts[i]));
  nest.output(0, "O", std::move(to), AccessMode::accumulate);
  nest.input(0, "I", axes_of(loops));
  return nest.finish();
}

/// Tile: out[r * size + i] = in[i] on every repeated axis.
LoopNest build_tile(const Graph& graph, const Operator& op) {
  const auto& in = input_shape(graph, op, 0);
  const auto& out = output_shape(graph, op, 0);
  LoopNestBuilder nest(graph, op, ComputeKind::copy);
  if (in.size() != out.size())
    fail(graph, op, "the output has other axes than the input");
  const std::vector<LoopIndex> loops = nest.loops_over(in);
  std::vector<AxisExpr> to = axes_of(loops);
  for (std::size_t i = 0; i < in.size(); ++i) {
    if (in[i] == out[i] || in[i] == 0)
      continue;
    if (out[i] % in[i] != 0)
      fail(graph, op, fmt::format("axis {} is not a multiple of the input", i));
    const LoopIndex repeat = nest.loop(fmt::format("R{}", i), out[i] / in[i]);
    to[i] = axis_sum({{repeat, in[i]}, {loops[i], 1}});
  }
  nest.output(0, "O", std::move(to));
  nest.input(0, "I", axes_of(loops));
  return nest.finish();
}

/// DepthToSpace and SpaceToDepth: exchange channels [block, block, C] (or [C, block, block]) and
/// block x block positions.
LoopNest build_depth_space(const Graph& graph, const Operator& op) {
  const bool to_space = op.op_type == ops::DepthToSpace;
  const auto& deep = to_space ? input_shape(graph, op, 0) : output_shape(graph, op, 0);
  const auto& wide = to_space ? output_shape(graph, op, 0) : input_shape(graph, op, 0);
  const std::int64_t block = op.attributes.integer("blocksize", 1);
  if (deep.size() != 4 || wide.size() != 4)
    fail(graph, op, "four axes are expected");
  if (block < 1 || block > (std::int64_t{1} << 20) || wide[1] * block * block != deep[1] ||
      deep[2] * block != wide[2] || deep[3] * block != wide[3]) {
    fail(graph, op, "the shapes do not fit the block", "attribute 'blocksize'");
  }
  const bool channels_first = to_space && op.attributes.text("mode", "DCR") == "CRD";
  LoopNestBuilder nest(graph, op, ComputeKind::copy);
  const LoopIndex n = nest.loop("N", deep[0]);
  const LoopIndex c = nest.loop("C", wide[1]);
  const LoopIndex h = nest.loop("H", deep[2]);
  const LoopIndex bh = nest.loop("BH", block);
  const LoopIndex w = nest.loop("W", deep[3]);
  const LoopIndex bw = nest.loop("BW", block);
  const AxisExpr channel = channels_first
                               ? axis_sum({{c, block * block}, {bh, block}, {bw, 1}})
                               : axis_sum({{bh, block * wide[1]}, {bw, wide[1]}, {c, 1}});
  std::vector<AxisExpr> deep_axes{axis(n), channel, axis(h), axis(w)};
  std::vector<AxisExpr> wide_axes{axis(n), axis(c), axis_sum({{h, block}, {bh, 1}}),
                                  axis_sum({{w, block}, {bw, 1}})};
  nest.output(0, "O", to_space ? wide_axes : deep_axes);
  nest.input(0, "I", to_space ? deep_axes : wide_axes);
  return nest.finish();
}

/// Output written element by element, from an input of equal shape or without input.
LoopNest build_fill(const Graph& graph, const Operator& op) {
  LoopNestBuilder nest(graph, op, ComputeKind::copy);
  const std::vector<LoopIndex> loops = nest.loops_over(output_shape(graph, op, 0));
  nest.output(0, "O", axes_of(loops));
  if (op.op_type == ops::Trilu)
    nest.input(0, "I", axes_of(loops));
  return nest.finish();
}

LoopNest build_one_hot(const Graph& graph, const Operator& op) {
  const auto& out = output_shape(graph, op, 0);
  const std::size_t at = normal_axis(graph, op, op.attributes.integer("axis", -1), out.size());
  LoopNestBuilder nest(graph, op, ComputeKind::vector, VectorWork{0, 0, 0, 1, 0, 0});
  const std::vector<LoopIndex> loops = nest.loops_over(out);
  std::vector<AxisExpr> index = axes_of(loops);
  index.erase(index.begin() + static_cast<std::ptrdiff_t>(at));
  nest.output(0, "O", axes_of(loops));
  nest.input(0, "indices", std::move(index));
  return nest.finish();
}

/// Copy whose read order depends on data.
LoopNest build_permuted(const Graph& graph, const Operator& op) {
  LoopNestBuilder nest(graph, op, ComputeKind::copy);
  const std::vector<LoopIndex> loops = nest.loops_over(output_shape(graph, op, 0));
  nest.output(0, "O", axes_of(loops));
  nest.opaque_input(0, "I");
  nest.opaque_input(1, "indices");
  return nest.finish();
}

} // namespace monet

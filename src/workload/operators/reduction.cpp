// Rules of reductions over axes, arg-reductions and running sums. Loops are the input's axes; the
// output lacks the reduced ones.
#include "workload/operators/families.hpp"

namespace monet {

namespace {

/// Axes from the attribute or constant input 1; nullopt if they are an input with unknown values.
std::optional<std::vector<bool>> named_axes(const Graph& graph, const Operator& op,
                                            std::size_t rank) {
  Integers axes = op.attributes.integers("axes");
  if (op.op_type.starts_with("Arg")) {
    axes = {op.attributes.integer("axis", 0)};
  } else if (has_input(op, 1)) {
    const auto constant = known_integers(graph, op, 1);
    if (!constant)
      return std::nullopt;
    axes = *constant;
  }
  const bool none = axes.empty();
  const bool keep_all = none && op.attributes.integer("noop_with_empty_axes", 0) != 0;
  std::vector<bool> reduced(rank, none && !keep_all);
  for (const std::int64_t axis : axes)
    reduced[normal_axis(graph, op, axis, rank)] = true;
  return reduced;
}

/// Reduced axes inferred from the shapes; an axis of equal size counts as kept.
std::vector<bool> axes_from_shapes(const Integers& in, const Integers& out, bool keepdims) {
  std::vector<bool> reduced(in.size(), false);
  std::size_t at = 0;
  for (std::size_t i = 0; i < in.size(); ++i) {
    const bool kept = at < out.size() && in[i] == out[at];
    reduced[i] = !kept;
    if (kept || keepdims)
      ++at;
  }
  return reduced;
}

} // namespace

LoopNest build_reduction(const Graph& graph, const Operator& op) {
  const OperatorRow& row = row_of(op);
  const auto& in = input_shape(graph, op, 0);
  const auto& out = output_shape(graph, op, 0);
  const bool keepdims = op.attributes.integer("keepdims", 1) != 0;
  const auto named = named_axes(graph, op, in.size());
  const std::vector<bool> reduced = named ? *named : axes_from_shapes(in, out, keepdims);
  LoopNestBuilder nest(graph, op, ComputeKind::vector, row.work);
  const std::vector<LoopIndex> loops = nest.loops_over(in);
  std::vector<AxisExpr> to;
  std::vector<AxisExpr> from;
  for (std::size_t i = 0; i < in.size(); ++i) {
    from.push_back(axis(loops[i]));
    if (!reduced[i])
      to.push_back(axis(loops[i]));
    if (reduced[i] && keepdims)
      to.push_back(axis_fixed());
  }
  nest.output(0, "O", std::move(to));
  nest.input(0, "I", std::move(from), row.passes);
  return nest.finish();
}

LoopNest build_running_sum(const Graph& graph, const Operator& op) {
  LoopNestBuilder nest(graph, op, ComputeKind::vector, VectorWork{1, 0, 0, 0, 0, 0});
  const auto& shape = output_shape(graph, op, 0);
  const std::vector<LoopIndex> loops = nest.loops_over(shape);
  const auto along = known_integers(graph, op, 1);
  for (std::size_t d = 0; d < loops.size(); ++d) {
    if (!along || along->size() != 1 || normal_axis(graph, op, along->front(), shape.size()) == d)
      nest.couple(loops[d]);
  }
  nest.output(0, "O", nest.broadcast(output_shape(graph, op, 0), loops));
  nest.input(0, "I", nest.broadcast(input_shape(graph, op, 0), loops));
  return nest.finish();
}

/// TopK: compares the input once per element; the positions of results depend on data.
LoopNest build_top_k(const Graph& graph, const Operator& op) {
  LoopNestBuilder nest(graph, op, ComputeKind::vector, VectorWork{0, 0, 0, 1, 0, 0});
  nest.loops_over(input_shape(graph, op, 0));
  nest.opaque_output(0, "O");
  nest.opaque_output(1, "indices");
  nest.opaque_input(0, "I");
  return nest.finish();
}

} // namespace monet

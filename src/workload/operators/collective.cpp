// Collective operations between ranks of a mesh. The nest covers one rank: its reads of the operand
// and its writes of the result.
#include "workload/operators/families.hpp"

#include <fmt/core.h>

namespace monet {

namespace {

std::int64_t positive(const Graph& graph, const Operator& op, std::string_view attribute) {
  const std::int64_t value = op.attributes.integer(attribute, 1);
  if (value < 1)
    fail(graph, op, "is not positive", fmt::format("attribute '{}'", attribute));
  return value;
}

/// Loops over an axis as [outer][parts][rest].
struct CutAxis {
  std::size_t dim = 0;
  LoopIndex outer{}, parts{}, rest{};
  std::int64_t rest_size = 1;

  AxisExpr whole(std::int64_t part_count) const {
    return axis_sum({{outer, part_count * rest_size}, {parts, rest_size}, {rest, 1}});
  }
  AxisExpr part() const { return axis_sum({{outer, rest_size}, {rest, 1}}); }
};

CutAxis cut_axis(const Graph& graph, const Operator& op, LoopNestBuilder& nest,
                 const Integers& whole, std::string_view prefix) {
  const std::int64_t parts = positive(graph, op, "parts");
  const std::int64_t outer = positive(graph, op, std::string(prefix) + "outer");
  CutAxis cut;
  cut.dim =
      normal_axis(graph, op, op.attributes.integer(std::string(prefix) + "dim", 0), whole.size());
  if (whole[cut.dim] % (parts * outer) != 0)
    fail(graph, op,
         fmt::format("{} elements are not {} times {} parts", whole[cut.dim], outer, parts));
  cut.rest_size = whole[cut.dim] / (parts * outer);
  cut.outer = nest.loop(std::string(prefix) + "outer", outer);
  cut.parts = nest.loop(std::string(prefix) + "parts", parts);
  cut.rest = nest.loop(std::string(prefix) + "rest", cut.rest_size);
  nest.couple(cut.parts);
  nest.couple(cut.rest);
  return cut;
}

/// Axes with a loop each, except the partitioned axis, which is `of_cut`.
std::vector<AxisExpr> axes_around(LoopNestBuilder& nest, const Integers& shape, std::size_t dim,
                                  const AxisExpr& of_cut, std::vector<LoopIndex>& loops) {
  std::vector<AxisExpr> axes;
  const std::vector<std::string> names = axis_names(shape.size());
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (loops.size() <= i)
      loops.push_back(i == dim ? LoopIndex{} : nest.loop(names[i], shape[i]));
    axes.push_back(i == dim ? of_cut : axis(loops[i]));
  }
  return axes;
}

} // namespace

/// (x) -> sum or maximum of x over the ranks.
LoopNest build_all_reduce(const Graph& graph, const Operator& op) {
  const auto& shape = output_shape(graph, op, 0);
  if (input_shape(graph, op, 0) != shape)
    fail(graph, op, "what is reduced keeps its shape");
  LoopNestBuilder nest(graph, op, ComputeKind::copy);
  const std::vector<LoopIndex> loops = nest.loops_over(shape);
  nest.output(0, "O", axes_of(loops));
  nest.input(0, "I", axes_of(loops));
  return nest.finish();
}

/// AllGather: (part) -> whole. Otherwise (whole) -> part, reduced over the ranks or only selected.
LoopNest build_cut(const Graph& graph, const Operator& op) {
  const bool gathers = op.op_type == ops::AllGather;
  const auto& whole = gathers ? output_shape(graph, op, 0) : input_shape(graph, op, 0);
  LoopNestBuilder nest(graph, op, ComputeKind::copy);
  const CutAxis cut = cut_axis(graph, op, nest, whole, "");
  std::vector<LoopIndex> loops;
  const std::int64_t parts = op.attributes.integer("parts", 1);
  const auto of_whole = axes_around(nest, whole, cut.dim, cut.whole(parts), loops);
  const auto of_part = axes_around(nest, whole, cut.dim, cut.part(), loops);
  nest.output(0, "O", gathers ? of_whole : of_part);
  nest.input(0, "I", gathers ? of_part : of_whole);
  return nest.finish();
}

/// (part along one axis) -> part along another axis.
LoopNest build_all_to_all(const Graph& graph, const Operator& op) {
  Integers whole = input_shape(graph, op, 0);
  const auto& to = output_shape(graph, op, 0);
  const std::int64_t parts = positive(graph, op, "parts");
  LoopNestBuilder nest(graph, op, ComputeKind::copy);
  for (std::size_t i = 0; i < whole.size() && to.size() == whole.size(); ++i)
    whole[i] = std::max(whole[i], to[i]);
  const CutAxis read = cut_axis(graph, op, nest, whole, "");
  const CutAxis written = cut_axis(graph, op, nest, whole, "to_");
  if (read.dim == written.dim)
    fail(graph, op, "an axis is cut anew");
  std::vector<AxisExpr> from, into;
  const std::vector<std::string> names = axis_names(whole.size());
  for (std::size_t i = 0; i < whole.size(); ++i) {
    if (i == read.dim) {
      from.push_back(read.part());
      into.push_back(read.whole(parts));
    } else if (i == written.dim) {
      from.push_back(written.whole(parts));
      into.push_back(written.part());
    } else {
      const LoopIndex loop = nest.loop(names[i], whole[i]);
      from.push_back(axis(loop));
      into.push_back(axis(loop));
    }
  }
  nest.output(0, "O", std::move(into));
  nest.input(0, "I", std::move(from));
  return nest.finish();
}

} // namespace monet

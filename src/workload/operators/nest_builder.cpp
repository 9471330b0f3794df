// Builds loop nests and checks their operands; the rules of all operators use it.
#include "workload/operators/nest_builder.hpp"

#include "base/shared/checked.hpp"
#include "workload/shared/operators.hpp"

#include <fmt/core.h>

#include <algorithm>

namespace monet {

AxisExpr axis(LoopIndex loop, std::int64_t coefficient, std::int64_t offset) {
  return AxisExpr{{AffineTerm{loop, coefficient}}, offset, false};
}

AxisExpr axis_sum(std::vector<AffineTerm> terms, std::int64_t offset) {
  std::ranges::sort(terms, [](const AffineTerm& a, const AffineTerm& b) { return a.dim < b.dim; });
  return AxisExpr{std::move(terms), offset, false};
}

AxisExpr axis_fixed(std::int64_t index) {
  return AxisExpr{{}, index, false};
}

std::vector<AxisExpr> axes_of(std::span<const LoopIndex> loops) {
  std::vector<AxisExpr> axes;
  axes.reserve(loops.size());
  for (const LoopIndex loop : loops)
    axes.push_back(axis(loop));
  return axes;
}

AxisExpr axis_data_dependent() {
  return AxisExpr{{}, 0, true};
}

std::vector<std::string> axis_names(std::size_t rank) {
  static const std::vector<std::string> kNames[]{
      {}, {"N"}, {"N", "C"}, {"B", "T", "C"}, {"N", "C", "H", "W"}, {"N", "C", "D", "H", "W"}};
  if (rank < std::size(kNames))
    return kNames[rank];
  std::vector<std::string> names;
  for (std::size_t i = 0; i < rank; ++i)
    names.push_back(fmt::format("A{}", i));
  return names;
}

std::string batch_name(std::size_t index, std::size_t count) {
  if (count > 1 && index + 1 == count)
    return "H";
  return count <= 2 ? "B" : fmt::format("B{}", index);
}

std::string input_role(std::size_t index) {
  return index == 0 ? "I" : index == 1 ? "W" : fmt::format("I{}", index);
}

void fail(const Graph& graph, const Operator& op, std::string_view what, std::string_view detail) {
  throw InputError(location_of(graph, op, detail), what);
}

bool has_input(const Operator& op, std::size_t index) {
  return index < op.inputs.size() && op.inputs[index].has_value();
}

bool has_output(const Operator& op, std::size_t index) {
  return index < op.outputs.size() && op.outputs[index].has_value();
}

const Integers& input_shape(const Graph& graph, const Operator& op, std::size_t index) {
  if (!has_input(op, index)) {
    fail(graph, op, fmt::format("input {} is missing", index));
  }
  return graph.tensor(*op.inputs[index]).shape;
}

const Integers& output_shape(const Graph& graph, const Operator& op, std::size_t index) {
  if (!has_output(op, index)) {
    fail(graph, op, fmt::format("output {} is missing", index));
  }
  return graph.tensor(*op.outputs[index]).shape;
}

std::size_t normal_axis(const Graph& graph, const Operator& op, std::int64_t axis,
                        std::size_t rank) {
  const auto signed_rank = static_cast<std::int64_t>(rank);
  if (axis < -signed_rank || axis >= signed_rank) {
    fail(graph, op, fmt::format("axis {} is outside a tensor of {} axes", axis, rank));
  }
  return static_cast<std::size_t>(axis < 0 ? axis + signed_rank : axis);
}

LoopNestBuilder::LoopNestBuilder(const Graph& graph, const Operator& op, ComputeKind compute,
                                 VectorWork work)
    : graph_(graph), op_(op) {
  nest_.compute = compute;
  nest_.work = work;
}

LoopIndex LoopNestBuilder::loop(std::string name, std::int64_t size) {
  if (size < 0)
    fail(graph_, op_, fmt::format("loop {} would run {} times", name, size));
  nest_.dims.push_back({std::move(name), size});
  return static_cast<LoopIndex>(nest_.dims.size() - 1);
}

std::vector<LoopIndex> LoopNestBuilder::loops_over(std::span<const std::int64_t> shape) {
  const std::vector<std::string> names = axis_names(shape.size());
  std::vector<LoopIndex> loops;
  for (std::size_t i = 0; i < shape.size(); ++i)
    loops.push_back(loop(names[i], shape[i]));
  return loops;
}

void LoopNestBuilder::add(const std::vector<std::optional<TensorId>>& tensors, std::size_t index,
                          Access access, bool exact) {
  if (index >= tensors.size() || !tensors[index])
    return;
  access.tensor = *tensors[index];
  const Tensor& subject = graph_.tensor(access.tensor);
  if (access.opaque) {
    nest_.operands.push_back(std::move(access));
    return;
  }
  if (access.axes.size() != subject.shape.size()) {
    fail(graph_, op_,
         fmt::format("'{}' has {} axes, {} are expected", subject.name, subject.shape.size(),
                     access.axes.size()));
  }
  for (std::size_t i = 0; exact && i < access.axes.size(); ++i) {
    const AxisExpr& expression = access.axes[i];
    if (expression.data_dependent)
      continue;
    std::int64_t low = expression.offset;
    std::int64_t high = expression.offset;
    bool empty = false;
    for (const AffineTerm& term : expression.terms) {
      const std::int64_t last = nest_.dims[term.dim].size - 1;
      empty = empty || last < 0;
      const std::int64_t reach = checked_multiply(term.coefficient, last);
      (reach < 0 ? low : high) = checked_add(reach < 0 ? low : high, reach);
    }
    const bool must_cover = access.mode == AccessMode::write;
    if (!empty && (low < 0 || high >= subject.shape[i] ||
                   (must_cover && !expression.terms.empty() && high + 1 != subject.shape[i]))) {
      fail(graph_, op_,
           fmt::format("axis {} of '{}' has {} elements, but {} to {} are addressed", i,
                       subject.name, subject.shape[i], low, high));
    }
  }
  nest_.operands.push_back(std::move(access));
}

void LoopNestBuilder::output(std::size_t index, std::string role, std::vector<AxisExpr> axes,
                             AccessMode mode, int passes) {
  add(op_.outputs, index, {TensorId{}, mode, std::move(role), std::move(axes), passes, false},
      mode == AccessMode::write);
}

void LoopNestBuilder::input(std::size_t index, std::string role, std::vector<AxisExpr> axes,
                            int passes) {
  add(op_.inputs, index,
      {TensorId{}, AccessMode::read, std::move(role), std::move(axes), passes, false}, true);
}

void LoopNestBuilder::padded_input(std::size_t index, std::string role, std::vector<AxisExpr> axes,
                                   int passes) {
  add(op_.inputs, index,
      {TensorId{}, AccessMode::read, std::move(role), std::move(axes), passes, false}, false);
}

void LoopNestBuilder::opaque_output(std::size_t index, std::string role, AccessMode mode) {
  add(op_.outputs, index, {TensorId{}, mode, std::move(role), {}, 1, true}, false);
}

void LoopNestBuilder::opaque_input(std::size_t index, std::string role) {
  add(op_.inputs, index, {TensorId{}, AccessMode::read, std::move(role), {}, 1, true}, false);
}

void LoopNestBuilder::outputs(std::size_t first, std::initializer_list<const char*> roles,
                              const std::vector<AxisExpr>& axes) {
  for (const char* role : roles)
    output(first++, role, axes);
}

void LoopNestBuilder::inputs(std::size_t first, std::initializer_list<const char*> roles,
                             const std::vector<AxisExpr>& axes, int passes) {
  for (const char* role : roles)
    input(first++, role, axes, passes);
}

void LoopNestBuilder::outputs_over(std::span<const LoopIndex> loops, std::size_t first,
                                   std::initializer_list<const char*> roles) {
  for (const char* role : roles) {
    if (has_output(op_, first))
      output(first, role, broadcast(output_shape(graph_, op_, first), loops));
    ++first;
  }
}

void LoopNestBuilder::inputs_over(std::span<const LoopIndex> loops, std::size_t first,
                                  std::initializer_list<const char*> roles, int passes) {
  for (const char* role : roles) {
    if (has_input(op_, first))
      input(first, role, broadcast(input_shape(graph_, op_, first), loops), passes);
    ++first;
  }
}

std::vector<AxisExpr> LoopNestBuilder::broadcast(std::span<const std::int64_t> shape,
                                                 std::span<const LoopIndex> loops) const {
  if (shape.size() > loops.size()) {
    fail(graph_, op_,
         fmt::format("a tensor of {} axes does not broadcast to {} axes", shape.size(),
                     loops.size()));
  }
  const std::size_t skipped = loops.size() - shape.size();
  std::vector<AxisExpr> axes;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    const LoopIndex over = loops[skipped + i];
    if (shape[i] == size(over)) {
      axes.push_back(axis(over));
    } else if (shape[i] == 1) {
      axes.push_back(axis_fixed());
    } else {
      fail(graph_, op_, fmt::format("a size of {} does not broadcast to {}", shape[i], size(over)));
    }
  }
  return axes;
}

void LoopNestBuilder::product(std::string_view result, std::string_view first,
                              std::string_view second) {
  const auto operand = [&](std::string_view role) -> std::optional<std::uint32_t> {
    const auto found = std::ranges::find(nest_.operands, role, &Access::role);
    if (found == nest_.operands.end())
      return std::nullopt;
    return static_cast<std::uint32_t>(found - nest_.operands.begin());
  };
  nest_.products.push_back({operand(result), operand(first), operand(second)});
}

LoopNest LoopNestBuilder::finish() {
  return std::move(nest_);
}

} // namespace monet

// Rules of optimiser updates: one iteration per element, one sweep per operand, and the work of the
// formula in update_formula.cpp. Also sparse updates of table rows, and parts of clipping and loss
// scaling: a test for finite numbers, and the next scale.
#include "workload/operators/families.hpp"
#include "workload/shared/update_formula.hpp"

#include <algorithm>
#include <bit>

namespace monet {

namespace {

std::string output_role(const Operator& op, std::size_t i) {
  if (i == 0)
    return "O";
  if (i + 1 == op.outputs.size() && op.attributes.integer("master_weights", 0) != 0)
    return "master";
  return update_role(op, kUpdateFirstState + (updates_rows(op) ? 1 : 0) + i - 1);
}

/// Axes of a table in which the loops access one data-dependent row per row of `rows`.
std::vector<AxisExpr> table_axes(const Graph& graph, const Operator& op, const Integers& table,
                                 const Integers& rows, std::span<const LoopIndex> loops) {
  if (table.empty() || table.size() != rows.size() ||
      !std::equal(table.begin() + 1, table.end(), rows.begin() + 1))
    fail(graph, op, "the gradient's rows are not those of the table");
  std::vector<AxisExpr> axes = axes_of(loops);
  axes.front() = axis_data_dependent();
  return axes;
}

void check_row_numbers(const Graph& graph, const Operator& op, std::size_t input,
                       const Integers& rows) {
  const auto& numbers = input_shape(graph, op, input);
  if (is_floating(graph.tensor(*op.inputs[input]).type))
    fail(graph, op, "numbers of rows are not integers");
  if (numbers.size() != 1 || rows.empty() || numbers[0] != rows[0])
    fail(graph, op, "there is not one number for each row");
}

/// Checks that all operands except row indices are real numbers.
void check_real(const Graph& graph, const Operator& op) {
  const std::size_t rows = updates_rows(op) ? std::size_t{kUpdateRows} : 1;
  for (const auto* list : {&op.inputs, &op.outputs}) {
    for (std::size_t i = 0; i < list->size(); ++i) {
      const bool counts = list == &op.inputs && i == rows;
      if (!counts && (*list)[i] && !is_floating(graph.tensor(*(*list)[i]).type))
        fail(graph, op, "updates rows of real numbers");
    }
  }
}

} // namespace

LoopNest build_update(const Graph& graph, const Operator& op) {
  const UpdateFormula formula = update_formula(graph, op);
  LoopNestBuilder nest(graph, op, ComputeKind::vector, work_of(formula));
  const std::vector<LoopIndex> loops = nest.loops_over(output_shape(graph, op, 0));
  for (std::size_t i = 0; i < op.outputs.size(); ++i)
    nest.output(i, output_role(op, i), nest.broadcast(output_shape(graph, op, i), loops));
  for (std::size_t i = 0; i < op.inputs.size(); ++i) {
    if (has_input(op, i))
      nest.input(i, update_role(op, i), nest.broadcast(input_shape(graph, op, i), loops));
  }
  return nest.finish();
}

/// Sparse update with one iteration per element of the gradient's rows. The indexed rows of weight
/// and states are read and overwritten; all others are unchanged.
LoopNest build_row_update(const Graph& graph, const Operator& op) {
  const UpdateFormula formula = update_formula(graph, op);
  const Integers& rows = input_shape(graph, op, kUpdateGradient);
  check_row_numbers(graph, op, kUpdateRows, rows);
  LoopNestBuilder nest(graph, op, ComputeKind::vector, work_of(formula));
  const std::vector<LoopIndex> loops = nest.loops_over(rows);
  const auto table = [&](const Integers& shape) {
    return table_axes(graph, op, shape, rows, loops);
  };
  check_real(graph, op);
  const auto check_table = [&](const Integers& shape) {
    if (shape != output_shape(graph, op, 0))
      fail(graph, op, "weight and states have different shapes");
  };
  for (std::size_t i = 0; i < op.outputs.size(); ++i) {
    check_table(output_shape(graph, op, i));
    nest.output(i, output_role(op, i), table(output_shape(graph, op, i)));
  }
  for (std::size_t i = 0; i < op.inputs.size(); ++i) {
    if (!has_input(op, i))
      continue;
    const std::string role = update_role(op, i);
    if (i == kUpdateWeight || i > kUpdateRows)
      check_table(input_shape(graph, op, i));
    if (i == kUpdateRows)
      nest.input(i, role, {axis(loops.front())});
    else if (i == kUpdateWeight || i > kUpdateRows)
      nest.input(i, role, table(input_shape(graph, op, i)));
    else
      nest.input(i, role, nest.broadcast(input_shape(graph, op, i), loops));
  }
  return nest.finish();
}

/// (table, row indices) -> these rows of the table.
LoopNest build_take_rows(const Graph& graph, const Operator& op) {
  check_real(graph, op);
  const Integers& rows = output_shape(graph, op, 0);
  check_row_numbers(graph, op, 1, rows);
  LoopNestBuilder nest(graph, op, ComputeKind::copy);
  const std::vector<LoopIndex> loops = nest.loops_over(rows);
  nest.output(0, "O", axes_of(loops));
  nest.input(0, "I", table_axes(graph, op, input_shape(graph, op, 0), rows, loops));
  nest.input(1, "rows", {axis(loops.front())});
  return nest.finish();
}

/// (values, row indices) -> table with these rows overwritten; the others are unchanged.
LoopNest build_put_rows(const Graph& graph, const Operator& op) {
  check_real(graph, op);
  const Integers& rows = input_shape(graph, op, 0);
  check_row_numbers(graph, op, 1, rows);
  LoopNestBuilder nest(graph, op, ComputeKind::copy);
  const std::vector<LoopIndex> loops = nest.loops_over(rows);
  nest.output(0, "O", table_axes(graph, op, output_shape(graph, op, 0), rows, loops));
  nest.input(0, "I", axes_of(loops));
  nest.input(1, "rows", {axis(loops.front())});
  return nest.finish();
}

/// (indices) -> (distinct indices in order, padded with `size`; position of each index among them).
/// Work is a merge sort: one comparison per halving.
LoopNest build_distinct(const Graph& graph, const Operator& op) {
  const Integers& shape = input_shape(graph, op, 0);
  if (shape.size() != 1 || output_shape(graph, op, 0) != shape ||
      output_shape(graph, op, 1) != shape)
    fail(graph, op, "indices and results have one axis, of one length");
  const auto halvings = static_cast<int>(std::bit_width(static_cast<std::uint64_t>(shape[0])));
  LoopNestBuilder nest(graph, op, ComputeKind::vector, {0, 0, 0, std::max(1, halvings), 0, 0});
  const std::vector<LoopIndex> loops = nest.loops_over(shape);
  nest.couple(loops.front());
  nest.outputs(0, {"O", "places"}, axes_of(loops));
  nest.input(0, "I", axes_of(loops));
  return nest.finish();
}

/// (x) -> scalar 1 if any element is infinite or NaN, otherwise 0.
LoopNest build_non_finite(const Graph& graph, const Operator& op) {
  LoopNestBuilder nest(graph, op, ComputeKind::vector, {0, 0, 0, 2, 0, 0});
  const std::vector<LoopIndex> loops = nest.loops_over(input_shape(graph, op, 0));
  nest.output(0, "O", {});
  nest.input(0, "I", axes_of(loops));
  return nest.finish();
}

/// (scale, steps since its last change, flag of non-finite gradients) -> (scale, steps): scalars.
LoopNest build_loss_scale(const Graph& graph, const Operator& op) {
  LoopNestBuilder nest(graph, op, ComputeKind::vector, {1, 1, 0, 3, 0, 0});
  nest.outputs(0, {"O", "steps"}, {});
  nest.inputs(0, {"I", "steps", "skip"}, {});
  return nest.finish();
}

} // namespace monet

// Element-wise operators with numpy broadcasting.
#include "workload/operators/families.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

namespace monet {

namespace {

VectorWork times(VectorWork work, int factor) {
  return {work.add * factor,     work.multiply * factor,    work.divide * factor,
          work.compare * factor, work.square_root * factor, work.transcendental * factor};
}

/// Work of x^p: without logarithm if p is a small integer (repeated squaring) or 1/2.
VectorWork power_work(const Graph& graph, const Operator& op, const VectorWork& general) {
  if (!has_input(op, 1) || element_count(graph.tensor(*op.inputs[1])) != 1)
    return general;
  const auto& known = graph.tensor(*op.inputs[1]).values;
  if (!known)
    return general;
  const double p =
      std::visit([](const auto& list) { return static_cast<double>(list.at(0)); }, *known);
  if (p == 0.5)
    return {0, 0, 0, 0, 1, 0};
  constexpr double kLargest = 16;
  if (p != std::floor(p) || p < 1 || p > kLargest)
    return general;
  const auto whole = static_cast<unsigned>(p);
  const auto products = std::bit_width(whole) - 1 + static_cast<unsigned>(std::popcount(whole)) - 1;
  return {0, static_cast<int>(products), 0, 0, 0, 0};
}

VectorWork elementwise_work(const Graph& graph, const Operator& op) {
  if (op.op_type == ops::Gelu && op.attributes.text("approximate", "none") == "tanh")
    return {2, 6, 0, 0, 0, 1}; // x/2 * (1 + tanh(k * x * (1 + a*x*x)))
  const OperatorRow& row = row_of(op);
  if (op.op_type == ops::Pow)
    return power_work(graph, op, row.work);
  if (!row.per_operand)
    return row.work;
  const auto operands =
      std::ranges::count_if(op.inputs, [](const auto& input) { return input.has_value(); });
  VectorWork work = times(row.work, std::max(static_cast<int>(operands) - 1, 0));
  if (op.op_type == ops::Mean)
    work.multiply += 1;
  return work;
}

/// Whether a quantisation scale or zero point has one value per channel; it lies along attribute
/// `axis`, not along the last axis.
bool is_per_channel(const Operator& op, std::size_t input, std::span<const std::int64_t> shape) {
  return input > 0 && shape.size() == 1 && shape[0] != 1 &&
         (op.op_type == ops::QuantizeLinear || op.op_type == ops::DequantizeLinear);
}

} // namespace

LoopNest build_elementwise(const Graph& graph, const Operator& op) {
  LoopNestBuilder nest(graph, op, ComputeKind::vector, elementwise_work(graph, op));
  const std::vector<LoopIndex> loops = nest.loops_over(output_shape(graph, op, 0));
  for (std::size_t i = 0; i < op.outputs.size(); ++i)
    nest.outputs_over(loops, i, {i == 0 ? "O" : "mask"});
  // PRelu's slope and com.microsoft's bias broadcast like other operands. CastLike reads only the
  // type of input 1.
  const std::size_t read = op.op_type == ops::CastLike ? 1 : op.inputs.size();
  for (std::size_t i = 0; i < read; ++i) {
    if (!has_input(op, i))
      continue;
    const auto& shape = input_shape(graph, op, i);
    if (is_per_channel(op, i, shape) && !loops.empty()) {
      const std::size_t at = normal_axis(graph, op, op.attributes.integer("axis", 1), loops.size());
      nest.input(i, input_role(i), {axis(loops[at])});
    } else {
      nest.input(i, input_role(i), nest.broadcast(shape, loops));
    }
  }
  return nest.finish();
}

} // namespace monet

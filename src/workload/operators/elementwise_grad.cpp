// Gradients of element-wise operators: loops over dY, the first input. An output with fewer or
// broadcast axes is a sum over the missing ones.
#include "workload/operators/families.hpp"
#include "workload/operators/nest_builder.hpp"

#include <algorithm>
#include <array>

namespace monet {

namespace {

struct ElementwiseGrad {
  std::string_view op_type;
  VectorWork first;  ///< per element of dY, for output 0
  VectorWork second; ///< for output 1, beyond what output 0 needed
};

// Order of work: add, multiply, divide, compare, square_root, transcendental.
constexpr std::array kTable{
    ElementwiseGrad{"ReluGrad", {0, 0, 0, 1, 0, 0}, {}},        // y > 0 ? dy : 0
    ElementwiseGrad{"LeakyReluGrad", {0, 1, 0, 1, 0, 0}, {}},   // y > 0 ? dy : a*dy
    ElementwiseGrad{"ClipGrad", {0, 0, 0, 2, 0, 0}, {}},        // min < y < max ? dy : 0
    ElementwiseGrad{"TanhGrad", {1, 2, 0, 0, 0, 0}, {}},        // dy * (1 - y*y)
    ElementwiseGrad{"SigmoidGrad", {1, 2, 0, 0, 0, 0}, {}},     // dy * y * (1 - y)
    ElementwiseGrad{"ErfGrad", {0, 3, 0, 0, 0, 1}, {}},         // dy * 2/sqrt(pi) * exp(-x*x)
    ElementwiseGrad{"SqrtGrad", {0, 1, 1, 0, 0, 0}, {}},        // dy * 0.5 / y
    ElementwiseGrad{"ReciprocalGrad", {1, 2, 0, 0, 0, 0}, {}},  // -dy * y * y
    ElementwiseGrad{"AbsGrad", {1, 0, 0, 1, 0, 0}, {}},         // x < 0 ? -dy : dy
    ElementwiseGrad{"HardSwishGrad", {1, 2, 0, 2, 0, 0}, {}},   // dy * (x/3 + 1/2) in (-3, 3)
    ElementwiseGrad{"HardSigmoidGrad", {0, 1, 0, 2, 0, 0}, {}}, // 0 < y < 1 ? a*dy : 0
    ElementwiseGrad{"EluGrad", {1, 1, 0, 1, 0, 0}, {}},         // y > 0 ? dy : dy * (y + a)
    ElementwiseGrad{"SoftplusGrad", {1, 1, 1, 0, 0, 1}, {}},    // dy * sigmoid(x)
    ElementwiseGrad{"PowGrad", {0, 3, 0, 0, 0, 2}, {}},         // dy * p * x^(p-1)
    ElementwiseGrad{"SquareGrad", {0, 2, 0, 0, 0, 0}, {}},      // dy * 2 * x
    ElementwiseGrad{"MulGrad", {0, 1, 0, 0, 0, 0}, {0, 1, 0, 0, 0, 0}},
    ElementwiseGrad{"DivGrad", {0, 0, 1, 0, 0, 0}, {1, 1, 1, 0, 0, 0}}, // dy/b; -(dy/b) * (a/b)
    ElementwiseGrad{"WhereGrad", {0, 0, 0, 1, 0, 0}, {0, 0, 0, 1, 0, 0}},
    ElementwiseGrad{"DropoutGrad", {0, 1, 0, 1, 0, 0}, {}}, // mask ? dy/(1-p) : 0
};

VectorWork plus(const VectorWork& a, const VectorWork& b) {
  return {
      a.add + b.add,         a.multiply + b.multiply,       a.divide + b.divide,
      a.compare + b.compare, a.square_root + b.square_root, a.transcendental + b.transcendental};
}

VectorWork work_of(const Graph& graph, const Operator& op) {
  const auto row = std::find_if(kTable.begin(), kTable.end(), [&](const ElementwiseGrad& entry) {
    return entry.op_type == op.op_type;
  });
  VectorWork work;
  if (has_output(op, 0))
    work = plus(work, row->first);
  if (has_output(op, 1)) {
    work = plus(work, row->second);
    if (!has_output(op, 0) && op.op_type == "DivGrad")
      work.divide += 1; // dy/b is not shared
  }
  for (std::size_t i = 0; i < op.outputs.size(); ++i) {
    if (has_output(op, i) && output_shape(graph, op, i) != input_shape(graph, op, 0))
      work.add += 1; // summed over the broadcast axes
  }
  return work;
}

LoopNest build(const Graph& graph, const Operator& op) {
  LoopNestBuilder nest(graph, op, ComputeKind::vector, work_of(graph, op));
  const std::vector<LoopIndex> loops = nest.loops_over(input_shape(graph, op, 0));
  for (std::size_t i = 0; i < op.outputs.size(); ++i) {
    if (has_output(op, i))
      nest.output(i, i == 0 ? "O" : "O2", nest.broadcast(output_shape(graph, op, i), loops));
  }
  for (std::size_t i = 0; i < op.inputs.size(); ++i) {
    if (!has_input(op, i))
      continue;
    const std::string role = i == 0 ? "I" : i == 1 ? "W" : "I" + std::to_string(i);
    nest.input(i, role, nest.broadcast(input_shape(graph, op, i), loops));
  }
  return nest.finish();
}

} // namespace

std::span<const OperatorRule> elementwise_grad_rules() {
  static const std::vector<OperatorRule> rules = [] {
    std::vector<OperatorRule> made;
    for (const ElementwiseGrad& row : kTable)
      made.push_back({kMonetDomain, row.op_type, &build, false});
    return made;
  }();
  return rules;
}

} // namespace monet

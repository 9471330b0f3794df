// Gradients of element-wise operators: loops over dY, the first input. An output with fewer or
// broadcast axes is a sum over the missing ones.
#include "workload/operators/families.hpp"
#include "workload/operators/nest_builder.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace monet {

namespace {

struct ElementwiseGrad {
  std::string_view op_type;
  VectorWork first;  ///< per element of dY, for output 0
  VectorWork second; ///< for each other output, beyond what output 0 needed
};

// Order of work: add, multiply, divide, compare, square_root, transcendental.
constexpr std::array kTable{
    ElementwiseGrad{"AbsGrad", {1, 0, 0, 2, 0, 0}, {}},   // dy * sign(x)
    ElementwiseGrad{"AcosGrad", {2, 1, 1, 0, 1, 0}, {}},  // -dy / sqrt(1 - x*x)
    ElementwiseGrad{"AcoshGrad", {1, 1, 1, 0, 1, 0}, {}}, // dy / sqrt(x*x - 1)
    ElementwiseGrad{"AsinGrad", {1, 1, 1, 0, 1, 0}, {}},  // dy / sqrt(1 - x*x)
    ElementwiseGrad{"AsinhGrad", {1, 1, 1, 0, 1, 0}, {}}, // dy / sqrt(x*x + 1)
    ElementwiseGrad{"AtanGrad", {1, 1, 1, 0, 0, 0}, {}},  // dy / (1 + x*x)
    ElementwiseGrad{"AtanhGrad", {1, 1, 1, 0, 0, 0}, {}}, // dy / (1 - x*x)
    ElementwiseGrad{"CeluGrad", {1, 1, 1, 1, 0, 0}, {}},  // y > 0 ? dy : dy * (y/a + 1)
    ElementwiseGrad{"ClipGrad", {0, 0, 0, 2, 0, 0}, {0, 0, 0, 2, 0, 0}}, // min <= x <= max ? dy : 0
    ElementwiseGrad{"CosGrad", {1, 1, 0, 0, 0, 1}, {}},                  // -dy * sin(x)
    ElementwiseGrad{"CoshGrad", {0, 1, 0, 0, 0, 1}, {}},                 // dy * sinh(x)
    ElementwiseGrad{"EluGrad", {1, 1, 0, 1, 0, 0}, {}},             // y > 0 ? dy : dy * (y + a)
    ElementwiseGrad{"ErfGrad", {0, 3, 0, 0, 0, 1}, {}},             // dy * 2/sqrt(pi) * exp(-x*x)
    ElementwiseGrad{"GeluGrad", {2, 6, 0, 0, 0, 2}, {}},            // dy * (Phi(x) + x*phi(x))
    ElementwiseGrad{"HardSigmoidGrad", {0, 1, 0, 2, 0, 0}, {}},     // 0 < y < 1 ? a*dy : 0
    ElementwiseGrad{"HardSwishGrad", {1, 2, 0, 2, 0, 0}, {}},       // dy * (x/3 + 1/2) in [-3, 3]
    ElementwiseGrad{"LeakyReluGrad", {0, 1, 0, 1, 0, 0}, {}},       // y > 0 ? dy : a*dy
    ElementwiseGrad{"MishGrad", {4, 4, 1, 0, 0, 3}, {}},            // dy * (t + x*s*(1 - t*t))
    ElementwiseGrad{"ReciprocalGrad", {1, 2, 0, 0, 0, 0}, {}},      // -dy * y * y
    ElementwiseGrad{"ReluGrad", {0, 0, 0, 1, 0, 0}, {}},            // y > 0 ? dy : 0
    ElementwiseGrad{"SeluGrad", {1, 1, 0, 1, 0, 0}, {}},            // y > 0 ? g*dy : dy * (y + g*a)
    ElementwiseGrad{"ShrinkGrad", {0, 0, 0, 2, 0, 0}, {}},          // |x| > lambda ? dy : 0
    ElementwiseGrad{"SigmoidGrad", {1, 2, 0, 0, 0, 0}, {}},         // dy * y * (1 - y)
    ElementwiseGrad{"SiluGrad", {3, 3, 1, 0, 0, 1}, {}},            // dy * s * (1 + x*(1 - s))
    ElementwiseGrad{"SinGrad", {0, 1, 0, 0, 0, 1}, {}},             // dy * cos(x)
    ElementwiseGrad{"SinhGrad", {0, 1, 0, 0, 0, 1}, {}},            // dy * cosh(x)
    ElementwiseGrad{"SoftplusGrad", {1, 1, 1, 0, 0, 1}, {}},        // dy * sigmoid(x)
    ElementwiseGrad{"SoftsignGrad", {1, 2, 0, 1, 0, 0}, {}},        // dy * (1 - |y|)^2
    ElementwiseGrad{"SqrtGrad", {0, 1, 1, 0, 0, 0}, {}},            // dy * 0.5 / y
    ElementwiseGrad{"SquareGrad", {0, 2, 0, 0, 0, 0}, {}},          // dy * 2 * x
    ElementwiseGrad{"TanGrad", {1, 2, 0, 0, 0, 0}, {}},             // dy * (1 + y*y)
    ElementwiseGrad{"TanhGrad", {1, 2, 0, 0, 0, 0}, {}},            // dy * (1 - y*y)
    ElementwiseGrad{"ThresholdedReluGrad", {0, 0, 0, 1, 0, 0}, {}}, // x > a ? dy : 0
    ElementwiseGrad{"DropoutGrad", {0, 1, 0, 1, 0, 0}, {}},         // mask ? dy/(1-p) : 0
    // Two operands. Below: dA; then what dB takes beyond it.
    ElementwiseGrad{"DivGrad", {0, 0, 1, 0, 0, 0}, {1, 1, 1, 0, 0, 0}}, // dy/b; -(dy/b) * (a/b)
    ElementwiseGrad{"MaxGrad", {0, 1, 0, 2, 0, 0}, {0, 1, 0, 1, 0, 0}}, // dy / (number of largest)
    ElementwiseGrad{"MinGrad", {0, 1, 0, 2, 0, 0}, {0, 1, 0, 1, 0, 0}},
    ElementwiseGrad{"MaskGrad", {0, 1, 0, 1, 0, 0}, {}}, // mask ? a*dy : b*dy
    ElementwiseGrad{"MulGrad", {0, 1, 0, 0, 0, 0}, {0, 1, 0, 0, 0, 0}},
    ElementwiseGrad{"PReluGrad", {0, 1, 0, 1, 0, 0}, {0, 1, 0, 1, 0, 0}}, // as LeakyRelu; x<0: dy*x
    ElementwiseGrad{"PowGrad", {1, 2, 0, 0, 0, 2}, {0, 2, 0, 1, 0, 1}}, // dy*p*x^(p-1); dy*y*log x
    ElementwiseGrad{"WhereGrad", {0, 0, 0, 1, 0, 0}, {0, 0, 0, 1, 0, 0}},
};

VectorWork plus(const VectorWork& a, const VectorWork& b) {
  return {
      a.add + b.add,         a.multiply + b.multiply,       a.divide + b.divide,
      a.compare + b.compare, a.square_root + b.square_root, a.transcendental + b.transcendental};
}

/// Work that depends on more than the operator's type.
VectorWork variant(const Operator& op, VectorWork work) {
  if (op.op_type == "GeluGrad" && op.attributes.text("approximate", "none") == "tanh")
    return {5, 11, 0, 0, 0, 1}; // one tanh, the derivative of its argument
  const bool exponential =
      op.op_type == "EluGrad" || op.op_type == "CeluGrad" || op.op_type == "SeluGrad";
  if (exponential && op.attributes.text("reads", "") == "input")
    work.transcendental += 1; // the exponential again
  return work;
}

VectorWork work_of(const Graph& graph, const Operator& op) {
  const auto row = std::find_if(kTable.begin(), kTable.end(), [&](const ElementwiseGrad& entry) {
    return entry.op_type == op.op_type;
  });
  VectorWork work;
  if (has_output(op, 0))
    work = plus(work, variant(op, row->first));
  for (std::size_t i = 1; i < op.outputs.size(); ++i) {
    if (has_output(op, i))
      work = plus(work, row->second);
  }
  if (!has_output(op, 0) && op.op_type == "DivGrad")
    work.divide += 1; // dy/b is not shared
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
      nest.output(i, i == 0 ? "O" : fmt::format("O{}", i + 1),
                  nest.broadcast(output_shape(graph, op, i), loops));
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

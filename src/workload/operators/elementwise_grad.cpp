// Rules of gradients of element-wise operators, with loops over dY, the first input. An output with
// fewer or broadcast axes is a sum over the missing ones.
#include "workload/operators/families.hpp"

#include <fmt/core.h>

namespace monet {

namespace {

struct ElementwiseGrad {
  std::string_view op_type;
  VectorWork first;  ///< per element of dY, for output 0
  VectorWork second; ///< per further output, in addition to `first`
};

// Order of work: add, multiply, divide, compare, square_root, transcendental.
constexpr ElementwiseGrad kElementwiseGrads[]{
    {"AbsGrad", {1, 0, 0, 2, 0, 0}},                      // dy * sign(x)
    {"AcosGrad", {2, 1, 1, 0, 1, 0}},                     // -dy / sqrt(1 - x*x)
    {"AcoshGrad", {1, 1, 1, 0, 1, 0}},                    // dy / sqrt(x*x - 1)
    {"AsinGrad", {1, 1, 1, 0, 1, 0}},                     // dy / sqrt(1 - x*x)
    {"AsinhGrad", {1, 1, 1, 0, 1, 0}},                    // dy / sqrt(x*x + 1)
    {"AtanGrad", {1, 1, 1, 0, 0, 0}},                     // dy / (1 + x*x)
    {"AtanhGrad", {1, 1, 1, 0, 0, 0}},                    // dy / (1 - x*x)
    {"CeluGrad", {1, 1, 1, 1, 0, 0}},                     // y > 0 ? dy : dy * (y/a + 1)
    {"ClipGrad", {0, 0, 0, 2, 0, 0}, {0, 0, 0, 2, 0, 0}}, // min <= x <= max ? dy : 0
    {"CosGrad", {1, 1, 0, 0, 0, 1}},                      // -dy * sin(x)
    {"CoshGrad", {0, 1, 0, 0, 0, 1}},                     // dy * sinh(x)
    {"EluGrad", {1, 1, 0, 1, 0, 0}},                      // y > 0 ? dy : dy * (y + a)
    {"ErfGrad", {0, 3, 0, 0, 0, 1}},                      // dy * 2/sqrt(pi) * exp(-x*x)
    {"GeluGrad", {2, 6, 0, 0, 0, 2}},                     // dy * (Phi(x) + x*phi(x))
    {"HardSigmoidGrad", {0, 1, 0, 2, 0, 0}},              // 0 < y < 1 ? a*dy : 0
    {"HardSwishGrad", {1, 2, 0, 2, 0, 0}},                // dy * (x/3 + 1/2) in [-3, 3]
    {"LeakyReluGrad", {0, 1, 0, 1, 0, 0}},                // y > 0 ? dy : a*dy
    {"MishGrad", {4, 4, 1, 0, 0, 3}},                     // dy * (t + x*s*(1 - t*t))
    {"ReciprocalGrad", {1, 2, 0, 0, 0, 0}},               // -dy * y * y
    {"ReluGrad", {0, 0, 0, 1, 0, 0}},                     // y > 0 ? dy : 0
    {"SeluGrad", {1, 1, 0, 1, 0, 0}},                     // y > 0 ? g*dy : dy * (y + g*a)
    {"ShrinkGrad", {0, 0, 0, 2, 0, 0}},                   // |x| > lambda ? dy : 0
    {"SigmoidGrad", {1, 2, 0, 0, 0, 0}},                  // dy * y * (1 - y)
    {"SiluGrad", {3, 3, 1, 0, 0, 1}},                     // dy * s * (1 + x*(1 - s))
    {"SinGrad", {0, 1, 0, 0, 0, 1}},                      // dy * cos(x)
    {"SinhGrad", {0, 1, 0, 0, 0, 1}},                     // dy * cosh(x)
    {"SoftplusGrad", {1, 1, 1, 0, 0, 1}},                 // dy * sigmoid(x)
    {"SoftsignGrad", {1, 2, 0, 1, 0, 0}},                 // dy * (1 - |y|)^2
    {"SqrtGrad", {0, 1, 1, 0, 0, 0}},                     // dy * 0.5 / y
    {"SquareGrad", {0, 2, 0, 0, 0, 0}},                   // dy * 2 * x
    {"TanGrad", {1, 2, 0, 0, 0, 0}},                      // dy * (1 + y*y)
    {"TanhGrad", {1, 2, 0, 0, 0, 0}},                     // dy * (1 - y*y)
    {"ThresholdedReluGrad", {0, 0, 0, 1, 0, 0}},          // x > a ? dy : 0
    {"DropoutGrad", {0, 1, 0, 1, 0, 0}},                  // mask ? dy/(1-p) : 0
    // Two operands: work of dA, then the additional work of dB.
    {"DivGrad", {0, 0, 1, 0, 0, 0}, {1, 1, 1, 0, 0, 0}}, // dy/b; -(dy/b) * (a/b)
    {"MaxGrad", {0, 1, 0, 2, 0, 0}, {0, 1, 0, 1, 0, 0}}, // dy / (number of largest)
    {"MinGrad", {0, 1, 0, 2, 0, 0}, {0, 1, 0, 1, 0, 0}},
    {"MaskGrad", {0, 1, 0, 1, 0, 0}},    // mask ? a*dy : b*dy
    {"ModGrad", {}, {0, 1, 1, 1, 0, 0}}, // dA = dY; -dy * floor(a/b)
    {"MulGrad", {0, 1, 0, 0, 0, 0}, {0, 1, 0, 0, 0, 0}},
    {"PReluGrad", {0, 1, 0, 1, 0, 0}, {0, 1, 0, 1, 0, 0}}, // as LeakyRelu; x<0: dy*x
    {"PowGrad", {1, 2, 0, 0, 0, 2}, {0, 2, 0, 1, 0, 1}},   // dy*p*x^(p-1); dy*y*log x
    {"WhereGrad", {0, 0, 0, 1, 0, 0}, {0, 0, 0, 1, 0, 0}},
};

VectorWork plus(const VectorWork& a, const VectorWork& b) {
  return {
      a.add + b.add,         a.multiply + b.multiply,       a.divide + b.divide,
      a.compare + b.compare, a.square_root + b.square_root, a.transcendental + b.transcendental};
}

/// Work of variants that attributes select.
VectorWork variant(const Operator& op, VectorWork work) {
  if (op.op_type == "GeluGrad" && op.attributes.text("approximate", "none") == "tanh")
    return {5, 11, 0, 0, 0, 1}; // one tanh, the derivative of its argument
  const bool exponential =
      op.op_type == "EluGrad" || op.op_type == "CeluGrad" || op.op_type == "SeluGrad";
  if (exponential && op.attributes.text("reads", "") == "input")
    work.transcendental += 1; // recomputes the exponential
  return work;
}

VectorWork elementwise_grad_work(const Graph& graph, const Operator& op) {
  const ElementwiseGrad& row = row_of(kElementwiseGrads, op);
  VectorWork work;
  if (has_output(op, 0))
    work = plus(work, variant(op, row.first));
  for (std::size_t i = 1; i < op.outputs.size(); ++i) {
    if (has_output(op, i))
      work = plus(work, row.second);
  }
  if (!has_output(op, 0) && op.op_type == "DivGrad")
    work.divide += 1; // dy/b is not shared
  for (std::size_t i = 0; i < op.outputs.size(); ++i) {
    if (has_output(op, i) && output_shape(graph, op, i) != input_shape(graph, op, 0))
      work.add += 1; // summed over the broadcast axes
  }
  return work;
}

LoopNest build_elementwise_grad(const Graph& graph, const Operator& op) {
  LoopNestBuilder nest(graph, op, ComputeKind::vector, elementwise_grad_work(graph, op));
  const std::vector<LoopIndex> loops = nest.loops_over(input_shape(graph, op, 0));
  for (std::size_t i = 0; i < op.outputs.size(); ++i) {
    if (has_output(op, i))
      nest.output(i, i == 0 ? "O" : fmt::format("O{}", i + 1),
                  nest.broadcast(output_shape(graph, op, i), loops));
  }
  for (std::size_t i = 0; i < op.inputs.size(); ++i) {
    if (has_input(op, i))
      nest.input(i, input_role(i), nest.broadcast(input_shape(graph, op, i), loops));
  }
  return nest.finish();
}

} // namespace

std::vector<OperatorRule> elementwise_grad_rules() {
  return rules_of(kElementwiseGrads, kMonetDomain, build_elementwise_grad);
}

} // namespace monet

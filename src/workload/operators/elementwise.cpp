// Element-wise operators with numpy broadcasting. One line each: scalar operations per output
// element.
#include "workload/operators/families.hpp"
#include "workload/operators/nest_builder.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

namespace monet {

namespace {

struct Elementwise {
  std::string_view domain;
  std::string_view op_type;
  VectorWork work; ///< per output element; per operand after the first where `per_operand`
  bool per_operand = false;
};

// Order of work: add, multiply, divide, compare, square_root, transcendental. Logic and bit
// operations count as compare. Functions of the exponential family count one transcendental for
// each exp, log, erf, tanh, sin evaluated.
constexpr std::array kTable{
    Elementwise{"", "Abs", {0, 0, 0, 1, 0, 0}},
    Elementwise{"", "Acos", {0, 0, 0, 0, 0, 1}},
    Elementwise{"", "Acosh", {0, 0, 0, 0, 0, 1}},
    Elementwise{"", "Add", {1, 0, 0, 0, 0, 0}},
    Elementwise{"", "And", {0, 0, 0, 1, 0, 0}},
    Elementwise{"", "Asin", {0, 0, 0, 0, 0, 1}},
    Elementwise{"", "Asinh", {0, 0, 0, 0, 0, 1}},
    Elementwise{"", "Atan", {0, 0, 0, 0, 0, 1}},
    Elementwise{"", "Atanh", {0, 0, 0, 0, 0, 1}},
    Elementwise{"", "Bernoulli", {0, 0, 0, 1, 0, 0}},
    Elementwise{"", "BitShift", {0, 0, 0, 1, 0, 0}},
    Elementwise{"", "Cast", {0, 0, 0, 1, 0, 0}},
    Elementwise{"", "CastLike", {0, 0, 0, 1, 0, 0}},
    Elementwise{"", "Ceil", {0, 0, 0, 1, 0, 0}},
    Elementwise{"", "Celu", {1, 1, 1, 2, 0, 1}},
    Elementwise{"", "Clip", {0, 0, 0, 2, 0, 0}},
    Elementwise{"", "Cos", {0, 0, 0, 0, 0, 1}},
    Elementwise{"", "Cosh", {0, 0, 0, 0, 0, 1}},
    Elementwise{"", "DequantizeLinear", {1, 1, 0, 0, 0, 0}},
    Elementwise{"", "Div", {0, 0, 1, 0, 0, 0}},
    Elementwise{"", "Dropout", {0, 1, 0, 1, 0, 0}},
    Elementwise{"", "Elu", {1, 1, 0, 1, 0, 1}},
    Elementwise{"", "Equal", {0, 0, 0, 1, 0, 0}},
    Elementwise{"", "Erf", {0, 0, 0, 0, 0, 1}},
    Elementwise{"", "Exp", {0, 0, 0, 0, 0, 1}},
    Elementwise{"", "Floor", {0, 0, 0, 1, 0, 0}},
    Elementwise{"", "Gelu", {1, 3, 0, 0, 0, 1}}, // x/2 * (1 + erf(x/sqrt 2))
    Elementwise{"", "Greater", {0, 0, 0, 1, 0, 0}},
    Elementwise{"", "GreaterOrEqual", {0, 0, 0, 1, 0, 0}},
    Elementwise{"", "HardSigmoid", {1, 1, 0, 2, 0, 0}},
    Elementwise{"", "HardSwish", {1, 2, 0, 2, 0, 0}},
    Elementwise{"", "IsInf", {0, 0, 0, 1, 0, 0}},
    Elementwise{"", "IsNaN", {0, 0, 0, 1, 0, 0}},
    Elementwise{"", "LeakyRelu", {0, 1, 0, 1, 0, 0}},
    Elementwise{"", "Less", {0, 0, 0, 1, 0, 0}},
    Elementwise{"", "LessOrEqual", {0, 0, 0, 1, 0, 0}},
    Elementwise{"", "Log", {0, 0, 0, 0, 0, 1}},
    Elementwise{"", "Max", {0, 0, 0, 1, 0, 0}, true},
    Elementwise{"", "Mean", {1, 0, 0, 0, 0, 0}, true},
    Elementwise{"", "Min", {0, 0, 0, 1, 0, 0}, true},
    Elementwise{"", "Mish", {1, 1, 0, 0, 0, 3}},
    Elementwise{"", "Mod", {1, 1, 1, 0, 0, 0}},
    Elementwise{"", "Mul", {0, 1, 0, 0, 0, 0}},
    Elementwise{"", "Neg", {1, 0, 0, 0, 0, 0}},
    Elementwise{"", "Not", {0, 0, 0, 1, 0, 0}},
    Elementwise{"", "Or", {0, 0, 0, 1, 0, 0}},
    Elementwise{"", "PRelu", {0, 1, 0, 1, 0, 0}},
    Elementwise{"", "Pow", {0, 1, 0, 0, 0, 2}}, // exp(y log x)
    Elementwise{"", "QuantizeLinear", {1, 0, 1, 2, 0, 0}},
    Elementwise{"", "RandomNormalLike", {0, 0, 0, 0, 0, 1}},
    Elementwise{"", "RandomUniformLike", {1, 1, 0, 0, 0, 0}},
    Elementwise{"", "Reciprocal", {0, 0, 1, 0, 0, 0}},
    Elementwise{"", "Relu", {0, 0, 0, 1, 0, 0}},
    Elementwise{"", "Round", {0, 0, 0, 1, 0, 0}},
    Elementwise{"", "Selu", {1, 2, 0, 1, 0, 1}},
    Elementwise{"", "Shrink", {1, 0, 0, 2, 0, 0}},
    Elementwise{"", "Sigmoid", {1, 0, 1, 0, 0, 1}},
    Elementwise{"", "Sign", {0, 0, 0, 2, 0, 0}},
    Elementwise{"", "Sin", {0, 0, 0, 0, 0, 1}},
    Elementwise{"", "Sinh", {0, 0, 0, 0, 0, 1}},
    Elementwise{"", "Softplus", {1, 0, 0, 0, 0, 2}},
    Elementwise{"", "Softsign", {1, 0, 1, 1, 0, 0}},
    Elementwise{"", "Sqrt", {0, 0, 0, 0, 1, 0}},
    Elementwise{"", "Sub", {1, 0, 0, 0, 0, 0}},
    Elementwise{"", "Sum", {1, 0, 0, 0, 0, 0}, true},
    Elementwise{"", "Tan", {0, 0, 0, 0, 0, 1}},
    Elementwise{"", "Tanh", {0, 0, 0, 0, 0, 1}},
    Elementwise{"", "ThresholdedRelu", {0, 0, 0, 1, 0, 0}},
    Elementwise{"", "Where", {0, 0, 0, 1, 0, 0}},
    Elementwise{"", "Xor", {0, 0, 0, 1, 0, 0}},
    Elementwise{kMonetDomain, "Silu", {1, 1, 1, 0, 0, 1}}, // x * sigmoid(alpha*x)
    Elementwise{"com.microsoft", "BiasGelu", {2, 2, 1, 0, 0, 1}},
    Elementwise{"com.microsoft", "FastGelu", {3, 5, 0, 0, 0, 1}},
    Elementwise{"com.microsoft", "Gelu", {1, 2, 1, 0, 0, 1}},
    Elementwise{"com.microsoft", "QuickGelu", {1, 2, 1, 0, 0, 1}},
    // with a mask as second output: where the gradient passes
    Elementwise{kMonetDomain, "Clip", {0, 0, 0, 2, 0, 0}},
    Elementwise{kMonetDomain, "HardSigmoid", {1, 1, 0, 2, 0, 0}},
    Elementwise{kMonetDomain, "LeakyRelu", {0, 1, 0, 1, 0, 0}},
    Elementwise{kMonetDomain, "Relu", {0, 0, 0, 1, 0, 0}},
    Elementwise{"com.microsoft", "ReluGrad", {0, 0, 0, 1, 0, 0}},
};

VectorWork times(VectorWork work, int factor) {
  return {work.add * factor,     work.multiply * factor,    work.divide * factor,
          work.compare * factor, work.square_root * factor, work.transcendental * factor};
}

/// x^p without logarithm where p is a small whole number (repeated squaring) or 1/2.
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

VectorWork work_of(const Graph& graph, const Operator& op) {
  if (op.op_type == "Gelu" && op.attributes.text("approximate", "none") == "tanh")
    return {2, 6, 0, 0, 0, 1}; // x/2 * (1 + tanh(k * x * (1 + a*x*x)))
  const auto entry = std::find_if(kTable.begin(), kTable.end(), [&](const Elementwise& row) {
    return row.domain == op.domain && row.op_type == op.op_type;
  });
  if (entry == kTable.end())
    return {};
  if (op.op_type == "Pow")
    return power_work(graph, op, entry->work);
  if (!entry->per_operand)
    return entry->work;
  const auto operands = std::count_if(op.inputs.begin(), op.inputs.end(),
                                      [](const auto& input) { return input.has_value(); });
  VectorWork work = times(entry->work, std::max(static_cast<int>(operands) - 1, 0));
  if (op.op_type == "Mean")
    work.multiply += 1;
  return work;
}

/// Quantisation scales and zero points of one value per channel lie along attribute `axis`, not
/// along the last axis.
bool is_per_channel(const Operator& op, std::size_t input, std::span<const std::int64_t> shape) {
  return input > 0 && shape.size() == 1 &&
         (op.op_type == "QuantizeLinear" || op.op_type == "DequantizeLinear");
}

LoopNest build_elementwise(const Graph& graph, const Operator& op) {
  LoopNestBuilder nest(graph, op, ComputeKind::vector, work_of(graph, op));
  const std::vector<LoopIndex> loops = nest.loops_over(output_shape(graph, op, 0));
  for (std::size_t i = 0; i < op.outputs.size(); ++i) {
    if (!has_output(op, i))
      continue;
    nest.output(i, i == 0 ? "O" : "mask", nest.broadcast(output_shape(graph, op, i), loops));
  }
  // PRelu's slope and com.microsoft's bias broadcast like any operand. CastLike reads only the type
  // of input 1.
  const std::size_t read = op.op_type == "CastLike" ? 1 : op.inputs.size();
  for (std::size_t i = 0; i < read; ++i) {
    if (!has_input(op, i))
      continue;
    const auto& shape = input_shape(graph, op, i);
    const std::string role = i == 0 ? "I" : i == 1 ? "W" : "I" + std::to_string(i);
    if (is_per_channel(op, i, shape) && !loops.empty()) {
      const std::size_t at = normal_axis(graph, op, op.attributes.integer("axis", 1), loops.size());
      nest.input(i, role, {axis(loops[at])});
    } else {
      nest.input(i, role, nest.broadcast(shape, loops));
    }
  }
  return nest.finish();
}

} // namespace

std::span<const OperatorRule> elementwise_rules() {
  static const std::vector<OperatorRule> rules = [] {
    std::vector<OperatorRule> made;
    for (const Elementwise& row : kTable) {
      made.push_back({row.domain, row.op_type, &build_elementwise, false});
    }
    return made;
  }();
  return rules;
}

} // namespace monet

// Rules of element-wise operators with numpy broadcasting: a table of scalar operations per output
// element.
#include "workload/operators/families.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

namespace monet {

namespace {

struct Elementwise {
  std::string_view domain;
  std::string_view op_type;
  VectorWork work; ///< per output element; with `per_operand`, per operand after the first
  bool per_operand = false;
};

// Order of work: add, multiply, divide, compare, square_root, transcendental. Logic and bit
// operations count as compare. Functions of the exponential family count one transcendental for
// each exp, log, erf, tanh or sin that they evaluate.
constexpr Elementwise kTable[]{
    {"", "Add", {1, 0, 0, 0, 0, 0}},
    {"", "Celu", {1, 1, 1, 2, 0, 1}},
    {"", "Clip", {0, 0, 0, 2, 0, 0}},
    {"", "DequantizeLinear", {1, 1, 0, 0, 0, 0}},
    {"", "Div", {0, 0, 1, 0, 0, 0}},
    {"", "Dropout", {0, 1, 0, 1, 0, 0}},
    {"", "Elu", {1, 1, 0, 1, 0, 1}},
    {"", "Gelu", {1, 3, 0, 0, 0, 1}}, // x/2 * (1 + erf(x/sqrt 2))
    {"", "HardSigmoid", {1, 1, 0, 2, 0, 0}},
    {"", "HardSwish", {1, 2, 0, 2, 0, 0}},
    {"", "LeakyRelu", {0, 1, 0, 1, 0, 0}},
    {"", "Max", {0, 0, 0, 1, 0, 0}, true},
    {"", "Mean", {1, 0, 0, 0, 0, 0}, true},
    {"", "Min", {0, 0, 0, 1, 0, 0}, true},
    {"", "Mish", {1, 1, 0, 0, 0, 3}},
    {"", "Mod", {1, 1, 1, 0, 0, 0}},
    {"", "Mul", {0, 1, 0, 0, 0, 0}},
    {"", "Neg", {1, 0, 0, 0, 0, 0}},
    {"", "PRelu", {0, 1, 0, 1, 0, 0}},
    {"", "Pow", {0, 1, 0, 0, 0, 2}}, // exp(y log x)
    {"", "QuantizeLinear", {1, 0, 1, 2, 0, 0}},
    {"", "RandomUniformLike", {1, 1, 0, 0, 0, 0}},
    {"", "Reciprocal", {0, 0, 1, 0, 0, 0}},
    {"", "Selu", {1, 2, 0, 1, 0, 1}},
    {"", "Shrink", {1, 0, 0, 2, 0, 0}},
    {"", "Sigmoid", {1, 0, 1, 0, 0, 1}},
    {"", "Sign", {0, 0, 0, 2, 0, 0}},
    {"", "Softplus", {1, 0, 0, 0, 0, 2}},
    {"", "Softsign", {1, 0, 1, 1, 0, 0}},
    {"", "Sqrt", {0, 0, 0, 0, 1, 0}},
    {"", "Sub", {1, 0, 0, 0, 0, 0}},
    {"", "Sum", {1, 0, 0, 0, 0, 0}, true},
    {kMonetDomain, "Silu", {1, 1, 1, 0, 0, 1}}, // x * sigmoid(alpha*x)
    {"com.microsoft", "BiasGelu", {2, 2, 1, 0, 0, 1}},
    {"com.microsoft", "FastGelu", {3, 5, 0, 0, 0, 1}},
    {"com.microsoft", "Gelu", {1, 2, 1, 0, 0, 1}},
    {"com.microsoft", "QuickGelu", {1, 2, 1, 0, 0, 1}},
    // second output: mask of elements that pass the gradient
    {kMonetDomain, "Clip", {0, 0, 0, 2, 0, 0}},
    {kMonetDomain, "HardSigmoid", {1, 1, 0, 2, 0, 0}},
    {kMonetDomain, "LeakyRelu", {0, 1, 0, 1, 0, 0}},
    {kMonetDomain, "Relu", {0, 0, 0, 1, 0, 0}},
    {"com.microsoft", "ReluGrad", {0, 0, 0, 1, 0, 0}},
};

/// ONNX operators with one comparison per output element.
constexpr std::string_view kComparing[]{
    "Abs",        "And",        "Bernoulli",      "BitShift",
    "BitwiseAnd", "BitwiseNot", "BitwiseOr",      "BitwiseXor",
    "Cast",       "CastLike",   "Ceil",           "Equal",
    "Floor",      "Greater",    "GreaterOrEqual", "IsInf",
    "IsNaN",      "Less",       "LessOrEqual",    "Not",
    "Or",         "Relu",       "Round",          "ThresholdedRelu",
    "Where",      "Xor"};
/// ONNX operators with one transcendental function per output element.
constexpr std::string_view kTranscendental[]{"Acos", "Acosh", "Asin", "Asinh",
                                             "Atan", "Atanh", "Cos",  "Cosh",
                                             "Erf",  "Exp",   "Log",  "RandomNormalLike",
                                             "Sin",  "Sinh",  "Tan",  "Tanh"};

const std::vector<Elementwise>& table() {
  static const std::vector<Elementwise> all = [] {
    std::vector<Elementwise> rows(std::begin(kTable), std::end(kTable));
    for (const std::string_view op_type : kComparing)
      rows.push_back({"", op_type, {0, 0, 0, 1, 0, 0}});
    for (const std::string_view op_type : kTranscendental)
      rows.push_back({"", op_type, {0, 0, 0, 0, 0, 1}});
    return rows;
  }();
  return all;
}

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
  if (op.op_type == "Gelu" && op.attributes.text("approximate", "none") == "tanh")
    return {2, 6, 0, 0, 0, 1}; // x/2 * (1 + tanh(k * x * (1 + a*x*x)))
  const auto entry = std::find_if(table().begin(), table().end(), [&](const Elementwise& row) {
    return row.domain == op.domain && row.op_type == op.op_type;
  });
  if (entry == table().end())
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

/// Whether a quantisation scale or zero point has one value per channel; it lies along attribute
/// `axis`, not along the last axis.
bool is_per_channel(const Operator& op, std::size_t input, std::span<const std::int64_t> shape) {
  return input > 0 && shape.size() == 1 && shape[0] != 1 &&
         (op.op_type == "QuantizeLinear" || op.op_type == "DequantizeLinear");
}

LoopNest build_elementwise(const Graph& graph, const Operator& op) {
  LoopNestBuilder nest(graph, op, ComputeKind::vector, elementwise_work(graph, op));
  const std::vector<LoopIndex> loops = nest.loops_over(output_shape(graph, op, 0));
  for (std::size_t i = 0; i < op.outputs.size(); ++i)
    nest.outputs_over(loops, i, {i == 0 ? "O" : "mask"});
  // PRelu's slope and com.microsoft's bias broadcast like other operands. CastLike reads only the
  // type of input 1.
  const std::size_t read = op.op_type == "CastLike" ? 1 : op.inputs.size();
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

} // namespace

std::vector<OperatorRule> elementwise_rules() {
  std::vector<OperatorRule> rules;
  for (const Elementwise& row : table())
    rules.push_back({row.domain, row.op_type, build_elementwise});
  return rules;
}

} // namespace monet

// Operators of one operand whose gradient is one operator that reads dY and what the derivative is
// a function of: element-wise functions, the softmax family, local response normalisation. Those of
// several operands, with broadcasting, are in elementwise_broadcast.cpp.
#include "training_graph/gradients/rules.hpp"

#include <algorithm>
#include <iterator>

namespace monet {

namespace {

// The gradient of an operator of these lists is called the same with "Grad" behind it.

/// The derivative is a function of the forward operator's input X. LpNormalization:
/// (dY - u * sum(dY * Y)) / norm, u = Y for the Euclidean norm and sign(X) for p = 1.
constexpr std::string_view kOfInput[]{
    "Abs",  "Acos", "Acosh", "Asin",     "Asinh",           "Atan", "Atanh",
    "Cos",  "Cosh", "Erf",   "Gelu",     "HardSwish",       "Mish", "Shrink",
    "Silu", "Sin",  "Sinh",  "Softplus", "LpNormalization", "LRN"};

/// Operators whose derivative is a function of the output Y.
struct OfOutput {
  std::string_view op_type;
  /// Y determines the branch that X took only if alpha (and gamma) is at least 0.
  bool output_needs_sign = false;
  double alpha = 1.0; ///< default of the operator's definition
  /// PyTorch keeps X although Y is sufficient.
  bool pytorch_keeps_input = false;
};

constexpr OfOutput kOfOutput[]{
    {"Celu", false, 1.0, true},
    {"Elu", true, 1.0, true},
    {"HardSigmoid", false, 1.0, true},
    {"LeakyRelu", true, 0.01, true},
    {"LogSoftmax"}, // dY - exp(Y) * sum(dY)
    {"Reciprocal"},
    {"Relu"},
    {"Selu", true, 1.0, true},
    {"Sigmoid"},
    {"Softmax"}, // Y * (dY - sum(dY * Y))
    {"Softsign"},
    {"Sqrt"},
    {"Tan"},
    {"Tanh"},
    {"ThresholdedRelu", true, 1.0, true},
};

void of_input(GradientContext& context) {
  context.emit({context.own_gradient(), {context.dy(), context.input(0)}, context.op().attributes});
}

/// dX = f(dY, Y), or f(dY, X) if attribute `reads` is "input".
void of_output(GradientContext& context) {
  const auto row = std::ranges::find(kOfOutput, context.op().op_type, &OfOutput::op_type);
  Attributes attributes = context.op().attributes;
  const bool falls =
      attributes.number("alpha", row->alpha) < 0 || attributes.number("gamma", 1.0) < 0;
  const bool reads_input =
      (row->output_needs_sign && falls) || (row->pytorch_keeps_input && context.as_pytorch());
  if (reads_input)
    attributes.set("reads", std::string("input"));
  // PyTorch's hard sigmoid has a slope of 1/6, its gradient 1/6 in single precision.
  if (row->op_type == "HardSigmoid" && attributes.has("alpha")) {
    const auto slope = static_cast<float>(attributes.number("alpha", row->alpha));
    attributes.set("alpha", static_cast<double>(slope));
  }
  const TensorId seen = reads_input ? context.input(0) : context.output(0);
  context.emit({context.own_gradient(), {context.dy(), seen}, std::move(attributes)});
}

/// Clip to [0, 6] is a ReLU6, whose gradient in PyTorch stops at the bounds themselves.
bool is_relu6(const GradientContext& context) {
  return known_number(context.graph(), context.op(), 1) == 0.0 &&
         known_number(context.graph(), context.op(), 2) == 6.0;
}

/// A bound receives dY where it takes effect: dMin where X < min (and min < max), dMax where X >
/// max (or max < min).
void clip_bounds(GradientContext& context) {
  for (std::size_t i = 1; i < 3; ++i) {
    if (context.wants(i))
      context.emit(
          {"ClipGrad",
           {context.dy(), context.input(0), context.optional_input(1), context.optional_input(2)}},
          context.only(i));
  }
}

/// dX = dY where min <= X <= max. ReLU6 passes dY strictly inside its bounds only. For that Y is
/// sufficient, which is stored for the next layer anyway; PyTorch keeps X.
void clip(GradientContext& context) {
  clip_bounds(context);
  if (!context.wants(0))
    return;
  const bool strict = is_relu6(context);
  const bool from_output = strict && !context.as_pytorch();
  context.emit({"ClipGrad",
                {context.dy(), from_output ? context.output(0) : context.input(0),
                 context.optional_input(1), context.optional_input(2)},
                {{"strict", std::int64_t{strict ? 1 : 0}}}});
}

/// dX = dY * mask / (1 - ratio); the mask is one boolean an element, written by the forward
/// operator.
void dropout(GradientContext& context) {
  context.emit({"DropoutGrad",
                {context.dy(), context.output(1)},
                {{"ratio", dropout_ratio(context.graph(), context.op())}}});
}

void exp_rule(GradientContext& context) {
  context.emit({"Mul", {context.dy(), context.output(0)}});
}
void log_rule(GradientContext& context) {
  context.emit({"Div", {context.dy(), context.input(0)}});
}
void neg(GradientContext& context) {
  context.emit({"Neg", {context.dy()}});
}

} // namespace

std::vector<GradientRule> elementwise_gradients() {
  std::vector<GradientRule> rules{
      {"Clip", clip},    {"Dropout", dropout, nullptr, 1},
      {"Exp", exp_rule}, {"Log", log_rule},
      {"Neg", neg},      {"Floor"},
      {"Ceil"},          {"Round"},
      {"Sign"},
  };
  for (const std::string_view op_type : kOfInput)
    rules.push_back({op_type, of_input});
  for (const OfOutput& row : kOfOutput)
    rules.push_back({row.op_type, of_output});
  return rules;
}

} // namespace monet

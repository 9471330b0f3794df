// Element-wise functions of one operand: one operator that reads dY and what the derivative is a
// function of. Those of several operands, with broadcasting, are in elementwise_broadcast.cpp.
#include "training/gradients/rules.hpp"

#include <algorithm>
#include <array>

namespace monet {

namespace {

/// What the derivative is computed from: the forward operator's input X or its output Y.
enum class Reads { input, output };

struct Unary {
  std::string_view op_type;
  std::string_view gradient;
  Reads reads;
  /// Y tells the branch that X took only for alpha (and gamma) of at least 0.
  bool output_needs_sign = false;
  double alpha = 1.0; ///< of the operator's definition
  /// PyTorch keeps X although Y is sufficient.
  bool pytorch_keeps_input = false;
};

constexpr std::array kUnary{
    Unary{"Abs", "AbsGrad", Reads::input},
    Unary{"Acos", "AcosGrad", Reads::input},
    Unary{"Acosh", "AcoshGrad", Reads::input},
    Unary{"Asin", "AsinGrad", Reads::input},
    Unary{"Asinh", "AsinhGrad", Reads::input},
    Unary{"Atan", "AtanGrad", Reads::input},
    Unary{"Atanh", "AtanhGrad", Reads::input},
    Unary{"Celu", "CeluGrad", Reads::output, false, 1.0, true},
    Unary{"Cos", "CosGrad", Reads::input},
    Unary{"Cosh", "CoshGrad", Reads::input},
    Unary{"Elu", "EluGrad", Reads::output, true, 1.0, true},
    Unary{"Erf", "ErfGrad", Reads::input},
    Unary{"Gelu", "GeluGrad", Reads::input},
    Unary{"HardSigmoid", "HardSigmoidGrad", Reads::output, false, 1.0, true},
    Unary{"HardSwish", "HardSwishGrad", Reads::input},
    Unary{"LeakyRelu", "LeakyReluGrad", Reads::output, true, 0.01, true},
    Unary{"Mish", "MishGrad", Reads::input},
    Unary{"Reciprocal", "ReciprocalGrad", Reads::output},
    Unary{"Relu", "ReluGrad", Reads::output},
    Unary{"Selu", "SeluGrad", Reads::output, true, 1.0, true},
    Unary{"Shrink", "ShrinkGrad", Reads::input},
    Unary{"Sigmoid", "SigmoidGrad", Reads::output},
    Unary{"Silu", "SiluGrad", Reads::input},
    Unary{"Sin", "SinGrad", Reads::input},
    Unary{"Sinh", "SinhGrad", Reads::input},
    Unary{"Softplus", "SoftplusGrad", Reads::input},
    Unary{"Softsign", "SoftsignGrad", Reads::output},
    Unary{"Sqrt", "SqrtGrad", Reads::output},
    Unary{"Tan", "TanGrad", Reads::output},
    Unary{"Tanh", "TanhGrad", Reads::output},
    Unary{"ThresholdedRelu", "ThresholdedReluGrad", Reads::output, true, 1.0, true},
};

/// dX = f(dY, X) or f(dY, Y); attribute `reads` tells the two apart where an operator's derivative
/// may be computed from either.
void unary(GradientContext& context) {
  const auto row = std::find_if(kUnary.begin(), kUnary.end(), [&](const Unary& entry) {
    return entry.op_type == context.op().op_type;
  });
  Attributes attributes = context.op().attributes;
  Reads reads = row->reads;
  const bool falls =
      attributes.number("alpha", row->alpha) < 0 || attributes.number("gamma", 1.0) < 0;
  if (row->output_needs_sign && falls)
    reads = Reads::input;
  if (row->pytorch_keeps_input && context.as_pytorch())
    reads = Reads::input;
  if (row->reads == Reads::output && reads == Reads::input)
    attributes.set("reads", std::string("input"));
  // PyTorch's hard sigmoid has a slope of 1/6, its gradient 1/6 in single precision.
  if (row->op_type == "HardSigmoid" && attributes.has("alpha")) {
    const auto slope = static_cast<float>(attributes.number("alpha", row->alpha));
    attributes.set("alpha", static_cast<double>(slope));
  }
  const TensorId seen = reads == Reads::input ? context.input(0) : context.output(0);
  context.emit({row->gradient, kMonetDomain, {context.dy(), seen}, std::move(attributes)}, {0});
}

/// Clip to [0, 6] is a ReLU6, whose gradient in PyTorch stops at the bounds themselves.
bool is_relu6(const GradientContext& context) {
  return known_number(context.graph(), context.op(), 1) == 0.0 &&
         known_number(context.graph(), context.op(), 2) == 6.0;
}

/// A bound receives dY where it takes effect: dMin where X < min (and min < max), dMax where X >
/// max (or max < min).
void clip_bounds(GradientContext& context) {
  std::vector<std::optional<TensorId>> inputs{context.dy(), context.input(0)};
  for (std::size_t i = 1; i < 3; ++i) {
    inputs.push_back(context.has_input(i) ? std::optional(context.input(i)) : std::nullopt);
  }
  for (std::size_t i = 1; i < 3; ++i) {
    if (!context.wants(i))
      continue;
    std::vector<std::optional<std::size_t>> target(i + 1);
    target[i] = i;
    context.emit({"ClipGrad", kMonetDomain, inputs}, target);
  }
}

/// dX = dY where min <= X <= max. ReLU6 passes strictly inside its bounds only, which Y tells as
/// well as X; Y is stored for the next layer anyway. PyTorch keeps X.
void clip(GradientContext& context) {
  clip_bounds(context);
  if (!context.wants(0))
    return;
  const bool strict = is_relu6(context);
  const bool from_output = strict && !context.as_pytorch();
  std::vector<std::optional<TensorId>> inputs{context.dy(),
                                              from_output ? context.output(0) : context.input(0)};
  for (std::size_t i = 1; i < 3; ++i) {
    inputs.push_back(context.has_input(i) ? std::optional(context.input(i)) : std::nullopt);
  }
  Attributes attributes;
  attributes.set("strict", std::int64_t{strict ? 1 : 0});
  context.emit({"ClipGrad", kMonetDomain, std::move(inputs), std::move(attributes)}, {0});
}

void exp_rule(GradientContext& context) {
  context.emit({"Mul", "", {context.dy(), context.output(0)}}, {0});
}
void log_rule(GradientContext& context) {
  context.emit({"Div", "", {context.dy(), context.input(0)}}, {0});
}
void neg(GradientContext& context) {
  context.emit({"Neg", "", {context.dy()}}, {0});
}

std::vector<GradientRule> make_rules() {
  std::vector<GradientRule> rules{
      {"Clip", clip}, {"Exp", exp_rule}, {"Log", log_rule}, {"Neg", neg},
      {"Floor"},      {"Ceil"},          {"Round"},         {"Sign"},
  };
  for (const Unary& row : kUnary)
    rules.push_back({row.op_type, unary});
  return rules;
}

} // namespace

std::span<const GradientRule> elementwise_gradients() {
  static const std::vector<GradientRule> rules = make_rules();
  return rules;
}

} // namespace monet

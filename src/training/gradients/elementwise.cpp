// Element-wise operators. A gradient is one fused operator per forward operator where the operand
// has the result's shape; the gradient of a broadcast operand is an operator of its own that
// reduces while it multiplies.
#include "training/gradients/rules.hpp"

#include <array>

namespace monet {

namespace {

using Inputs = std::vector<std::optional<TensorId>>;
using Targets = std::vector<std::optional<std::size_t>>;

/// The input's gradient is wanted and has the shape of dY.
bool is_whole(const GradientContext& context, std::size_t i) {
  return context.wants(i) &&
         context.input_shape(i) == context.graph().tensor(context.output(0)).shape;
}

/// dX = f(dY, X): reads the forward input.
template <const char* kGrad>
void from_input(GradientContext& context) {
  context.emit({kGrad, kMonetDomain, {context.dy(), context.input(0)}, context.op().attributes},
               {0});
}
/// dX = f(dY, Y): reads the forward output.
template <const char* kGrad>
void from_output(GradientContext& context) {
  context.emit({kGrad, kMonetDomain, {context.dy(), context.output(0)}, context.op().attributes},
               {0});
}

constexpr char kReluGrad[] = "ReluGrad";
constexpr char kLeakyReluGrad[] = "LeakyReluGrad";
constexpr char kTanhGrad[] = "TanhGrad";
constexpr char kSigmoidGrad[] = "SigmoidGrad";
constexpr char kErfGrad[] = "ErfGrad";
constexpr char kSqrtGrad[] = "SqrtGrad";
constexpr char kReciprocalGrad[] = "ReciprocalGrad";
constexpr char kAbsGrad[] = "AbsGrad";
constexpr char kHardSwishGrad[] = "HardSwishGrad";
constexpr char kHardSigmoidGrad[] = "HardSigmoidGrad";
constexpr char kEluGrad[] = "EluGrad";
constexpr char kSoftplusGrad[] = "SoftplusGrad";

/// dX = dY where min < X < max. Y lies strictly between the bounds exactly where X does, and Y is
/// stored for the next layer anyway; PyTorch keeps X.
void clip(GradientContext& context) {
  const TensorId seen = context.as_pytorch() ? context.input(0) : context.output(0);
  Inputs inputs{context.dy(), seen};
  for (std::size_t i = 1; i < 3; ++i) {
    inputs.push_back(context.has_input(i) ? std::optional(context.input(i)) : std::nullopt);
  }
  context.emit({"ClipGrad", kMonetDomain, std::move(inputs), context.op().attributes}, {0});
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

void pow_rule(GradientContext& context) {
  context.emit({"PowGrad", kMonetDomain, {context.dy(), context.input(0), context.input(1)}}, {0});
}
std::string refuse_pow(const Graph& graph, const Operator& op) {
  if (!known_number(graph, op, 1)) {
    return "Pow has a gradient only when its exponent is a constant scalar";
  }
  const Tensor& base = graph.tensor(*op.inputs[0]);
  const bool same = base.shape == graph.tensor(*op.outputs[0]).shape;
  return same ? "" : "Pow has a gradient only when its base has the shape of the result";
}

void add(GradientContext& context) {
  const std::size_t inputs = context.op().inputs.size();
  for (std::size_t i = 0; i < inputs; ++i) {
    if (context.wants(i))
      context.give(i, context.reduce_to(context.dy(), context.input_shape(i)));
  }
}

void sub(GradientContext& context) {
  if (context.wants(0))
    context.give(0, context.reduce_to(context.dy(), context.input_shape(0)));
  if (!context.wants(1))
    return;
  const TensorId reduced = context.reduce_to(context.dy(), context.input_shape(1));
  context.emit({"Neg", "", {reduced}}, {1});
}

/// dA = dY*B, dB = dY*A. Reads an operand only when the other's gradient is wanted.
void mul(GradientContext& context) {
  const TensorId dy = context.dy();
  const std::array<TensorId, 2> in{context.input(0), context.input(1)};
  if (in[0] == in[1]) {
    context.emit({"SquareGrad", kMonetDomain, {dy, in[0]}}, {0});
    return;
  }
  if (is_whole(context, 0) && is_whole(context, 1)) {
    context.emit({"MulGrad", kMonetDomain, {dy, in[0], in[1]}}, {0, 1});
    return;
  }
  for (std::size_t i = 0; i < 2; ++i) {
    if (!context.wants(i))
      continue;
    const TensorId other = in[1 - i];
    if (is_whole(context, i)) {
      context.emit({"Mul", "", {dy, other}}, {i});
    } else if (i == 0) {
      context.emit({"MulGrad", kMonetDomain, {dy, std::nullopt, other}}, {0});
    } else {
      context.emit({"MulGrad", kMonetDomain, {dy, other}}, Targets{std::nullopt, 1});
    }
  }
}

/// dA = dY/B, dB = -dY*A/B^2.
void div(GradientContext& context) {
  const TensorId dy = context.dy();
  const TensorId numerator = context.input(0);
  const TensorId denominator = context.input(1);
  if (is_whole(context, 0) && is_whole(context, 1)) {
    context.emit({"DivGrad", kMonetDomain, {dy, numerator, denominator}}, {0, 1});
    return;
  }
  if (is_whole(context, 0)) {
    context.emit({"Div", "", {dy, denominator}}, {0});
  } else if (context.wants(0)) {
    context.emit({"DivGrad", kMonetDomain, {dy, std::nullopt, denominator}}, {0});
  }
  if (context.wants(1)) {
    context.emit({"DivGrad", kMonetDomain, {dy, numerator, denominator}}, Targets{std::nullopt, 1});
  }
}

/// dA = dY where the condition holds, dB = dY elsewhere; only the condition is kept.
void where(GradientContext& context) {
  const Inputs inputs{context.dy(), context.input(0)};
  if (is_whole(context, 1) && is_whole(context, 2)) {
    context.emit({"WhereGrad", kMonetDomain, inputs}, {1, 2});
    return;
  }
  if (context.wants(1))
    context.emit({"WhereGrad", kMonetDomain, inputs}, {1});
  if (context.wants(2))
    context.emit({"WhereGrad", kMonetDomain, inputs}, Targets{std::nullopt, 2});
}

constexpr GradientRule kRules[]{
    {"Relu", from_output<kReluGrad>},
    {"LeakyRelu", from_output<kLeakyReluGrad>},
    {"Clip", clip},
    {"Tanh", from_output<kTanhGrad>},
    {"Sigmoid", from_output<kSigmoidGrad>},
    {"Erf", from_input<kErfGrad>},
    {"Sqrt", from_output<kSqrtGrad>},
    {"Reciprocal", from_output<kReciprocalGrad>},
    {"Abs", from_input<kAbsGrad>},
    {"HardSwish", from_input<kHardSwishGrad>},
    {"HardSigmoid", from_output<kHardSigmoidGrad>},
    {"Elu", from_output<kEluGrad>},
    {"Softplus", from_input<kSoftplusGrad>},
    {"Exp", exp_rule},
    {"Log", log_rule},
    {"Neg", neg},
    {"Pow", pow_rule, refuse_pow},
    {"Add", add},
    {"Sum", add},
    {"Sub", sub},
    {"Mul", mul},
    {"Div", div},
    {"Where", where},
    {"Floor"},
    {"Ceil"},
    {"Round"},
    {"Sign"},
};

} // namespace

std::span<const GradientRule> elementwise_gradients() {
  return kRules;
}

} // namespace monet

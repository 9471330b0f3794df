// Element-wise operators of several operands. A gradient is one fused operator per forward operator
// where the operands have the result's shape; the gradient of a broadcast operand is an operator of
// its own that reduces while it multiplies.
#include "training_graph/gradients/rules.hpp"
#include "workload/shared/op_types.hpp"

#include <array>

namespace monet {

namespace {

using Inputs = std::vector<std::optional<TensorId>>;
using Targets = GradientContext::Targets;

/// The input's gradient is wanted and has the shape of dY.
bool is_whole(const GradientContext& context, std::size_t i) {
  return context.wants(i) &&
         context.input_shape(i) == context.graph().tensor(context.output(0)).shape;
}

void give_reduced(GradientContext& context, std::size_t i, TensorId gradient) {
  if (context.wants(i))
    context.give(i, context.reduce_to(gradient, context.input_shape(i)));
}

void add(GradientContext& context) {
  const std::size_t inputs = context.op().inputs.size();
  for (std::size_t i = 0; i < inputs; ++i)
    give_reduced(context, i, context.dy());
}

/// dX_i = dY / n, reduced after it is scaled once.
void mean(GradientContext& context) {
  const std::size_t inputs = context.op().inputs.size();
  const TensorId share = context.scalar(1.0 / static_cast<double>(inputs));
  const TensorId scaled =
      inputs == 1 ? context.dy()
                  : context.emit_value({ops::Mul, {context.dy(), share}}, context.dy_shape());
  for (std::size_t i = 0; i < inputs; ++i)
    give_reduced(context, i, scaled);
}

void sub(GradientContext& context) {
  give_reduced(context, 0, context.dy());
  if (!context.wants(1))
    return;
  const TensorId reduced = context.reduce_to(context.dy(), context.input_shape(1));
  context.emit({ops::Neg, {reduced}}, {1});
}

/// The remainder grows with A, and falls by how often B fits: dA = dY, dB = -dY * floor(A / B),
/// with fmod towards zero.
void mod(GradientContext& context) {
  const TensorId dy = context.dy();
  give_reduced(context, 0, dy);
  if (context.wants(1))
    context.emit({ops::ModGrad, {dy, context.input(0), context.input(1)}, context.op().attributes},
                 context.only(1));
}

/// dA = dY*B, dB = dY*A. Reads an operand only when the other's gradient is wanted.
void mul(GradientContext& context) {
  const TensorId dy = context.dy();
  const std::array<TensorId, 2> in{context.input(0), context.input(1)};
  if (in[0] == in[1]) {
    context.emit({ops::SquareGrad, {dy, in[0]}});
    return;
  }
  if (is_whole(context, 0) && is_whole(context, 1)) {
    context.emit({ops::MulGrad, {dy, in[0], in[1]}}, {0, 1});
    return;
  }
  for (std::size_t i = 0; i < 2; ++i) {
    if (!context.wants(i))
      continue;
    const TensorId other = in[1 - i];
    if (is_whole(context, i)) {
      context.emit({ops::Mul, {dy, other}}, {i});
    } else if (i == 0) {
      context.emit({ops::MulGrad, {dy, std::nullopt, other}});
    } else {
      context.emit({ops::MulGrad, {dy, other}}, context.only(1));
    }
  }
}

/// dA = dY/B, dB = -dY*A/B^2.
void div(GradientContext& context) {
  const TensorId dy = context.dy();
  const TensorId numerator = context.input(0);
  const TensorId denominator = context.input(1);
  if (is_whole(context, 0) && is_whole(context, 1)) {
    context.emit({ops::DivGrad, {dy, numerator, denominator}}, {0, 1});
    return;
  }
  if (is_whole(context, 0)) {
    context.emit({ops::Div, {dy, denominator}});
  } else if (context.wants(0)) {
    context.emit({ops::DivGrad, {dy, std::nullopt, denominator}});
  }
  if (context.wants(1)) {
    context.emit({ops::DivGrad, {dy, numerator, denominator}}, context.only(1));
  }
}

/// dBase = dY * p * base^(p-1) (zero for p = 0), dP = dY * Y * log(base) (zero where base = 0 and
/// p >= 0).
void pow_rule(GradientContext& context) {
  const TensorId dy = context.dy();
  const TensorId base = context.input(0);
  const TensorId exponent = context.input(1);
  const bool square = known_number(context.graph(), context.op(), 1) == 2.0;
  if (is_whole(context, 0) && is_whole(context, 1)) {
    context.emit({ops::PowGrad, {dy, base, exponent, context.output(0)}}, {0, 1});
    return;
  }
  if (is_whole(context, 0) && square) {
    context.emit({ops::SquareGrad, {dy, base}});
  } else if (context.wants(0)) {
    context.emit({ops::PowGrad, {dy, base, exponent}});
  }
  if (context.wants(1)) {
    context.emit({ops::PowGrad, {dy, base, exponent, context.output(0)}}, context.only(1));
  }
}

/// The operands that equal the result share dY evenly, as in PyTorch's maximum and minimum.
void extremum(GradientContext& context) {
  const std::size_t count = context.op().inputs.size();
  if (count == 1) {
    context.give(0, context.dy());
    return;
  }
  Inputs inputs{context.dy()};
  for (std::size_t i = 0; i < count; ++i)
    inputs.emplace_back(context.input(i));
  Targets whole(count);
  for (std::size_t i = 0; i < count; ++i) {
    if (is_whole(context, i))
      whole[i] = i;
  }
  if (whole != Targets(count))
    context.emit({context.own_gradient(), inputs}, whole);
  for (std::size_t i = 0; i < count; ++i) {
    if (context.wants(i) && !whole[i])
      context.emit({context.own_gradient(), inputs}, context.only(i));
  }
}

/// dX = X > 0 ? dY : slope*dY, dSlope = X > 0 ? 0 : X*dY. The slope broadcasts to X.
void prelu(GradientContext& context) {
  const Inputs inputs{context.dy(), context.input(0), context.input(1)};
  if (is_whole(context, 0) && is_whole(context, 1)) {
    context.emit({ops::PReluGrad, inputs}, {0, 1});
    return;
  }
  if (context.wants(1)) {
    context.emit({ops::PReluGrad, {inputs[0], inputs[1]}}, context.only(1));
  }
  if (context.wants(0))
    context.emit({ops::PReluGrad, inputs});
}

/// dA = dY where the condition holds, dB = dY elsewhere; only the condition is kept.
void where(GradientContext& context) {
  const Inputs inputs{context.dy(), context.input(0)};
  if (is_whole(context, 1) && is_whole(context, 2)) {
    context.emit({ops::WhereGrad, inputs}, {1, 2});
    return;
  }
  if (context.wants(1))
    context.emit({ops::WhereGrad, inputs}, {1});
  if (context.wants(2))
    context.emit({ops::WhereGrad, inputs}, Targets{std::nullopt, 2});
}

} // namespace

std::vector<GradientRule> broadcast_gradients() {
  return {
      {ops::Add, add},      {ops::Div, div}, {ops::Max, extremum}, {ops::Mean, mean},
      {ops::Min, extremum}, {ops::Mod, mod}, {ops::Mul, mul},      {ops::PRelu, prelu},
      {ops::Pow, pow_rule}, {ops::Sub, sub}, {ops::Sum, add},      {ops::Where, where},
  };
}

} // namespace monet

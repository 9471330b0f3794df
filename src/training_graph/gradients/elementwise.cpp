// Operators of one operand whose gradient is one operator that reads dY and what the derivative is
// a function of: element-wise functions, the softmax family, local response normalisation. Those of
// several operands, with broadcasting, are in elementwise_broadcast.cpp.
#include "training_graph/gradients/rules.hpp"
#include "workload/shared/operators.hpp"

#include <algorithm>

namespace monet {

namespace {

void of_input(GradientContext& context) {
  context.emit({context.own_gradient(), {context.dy(), context.input(0)}, context.op().attributes});
}

/// dX = f(dY, Y), or f(dY, X) if attribute `reads` is "input".
void of_output(GradientContext& context) {
  const OperatorRow& row = *find_row(context.op().op_type);
  Attributes attributes = context.op().attributes;
  const bool falls =
      attributes.number("alpha", row.alpha) < 0 || attributes.number("gamma", 1.0) < 0;
  const bool reads_input =
      (row.needs_sign && falls) || (row.torch_reads_input && context.as_pytorch());
  if (reads_input)
    attributes.set("reads", std::string("input"));
  // PyTorch's hard sigmoid has a slope of 1/6, its gradient 1/6 in single precision.
  if (row.op_type == ops::HardSigmoid && attributes.has("alpha")) {
    const auto slope = static_cast<float>(attributes.number("alpha", row.alpha));
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
          {ops::ClipGrad,
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
  context.emit({ops::ClipGrad,
                {context.dy(), from_output ? context.output(0) : context.input(0),
                 context.optional_input(1), context.optional_input(2)},
                {{"strict", std::int64_t{strict ? 1 : 0}}}});
}

/// dX = dY * mask / (1 - ratio); the mask is one boolean an element, written by the forward
/// operator.
void dropout(GradientContext& context) {
  context.emit({ops::DropoutGrad,
                {context.dy(), context.output(1)},
                {{"ratio", dropout_ratio(context.graph(), context.op())}}});
}

void exp_rule(GradientContext& context) {
  context.emit({ops::Mul, {context.dy(), context.output(0)}});
}
void log_rule(GradientContext& context) {
  context.emit({ops::Div, {context.dy(), context.input(0)}});
}
void neg(GradientContext& context) {
  context.emit({ops::Neg, {context.dy()}});
}

} // namespace

std::vector<GradientRule> elementwise_gradients() {
  std::vector<GradientRule> rules{{ops::Clip, clip},
                                  {ops::Dropout, dropout, nullptr, 1},
                                  {ops::Exp, exp_rule},
                                  {ops::Log, log_rule},
                                  {ops::Neg, neg}};
  for (const OperatorRow& row : all_rows()) {
    if (row.gradient == GradientForm::of_input)
      rules.push_back({row.op_type, of_input});
    if (row.gradient == GradientForm::of_output)
      rules.push_back({row.op_type, of_output});
    if (row.gradient == GradientForm::stops)
      rules.push_back({row.op_type});
  }
  return rules;
}

} // namespace monet

// Products: the gradient of a multiply-accumulate nest with respect to one operand is the same nest
// with that operand written instead of the result, so every gradient costs exactly the forward
// MACs. Weights first: their operand can be freed before the gradient of the input is made.
#include "training_graph/gradients/rules.hpp"
#include "workload/shared/op_types.hpp"
#include "workload/shared/views.hpp"

#include "monet/base/errors.hpp"

#include <numeric>
#include <optional>

namespace monet {

namespace {

struct Product {
  OpType first;  ///< operator for the gradient of input 0: (dY, B) -> dA
  OpType second; ///< of input 1: (A, dY) -> dB
};

/// The trained part of a weight that is joined from it and a part that is not (sparse.cpp).
std::optional<TensorId> trained_part(const GradientContext& context) {
  const Graph& graph = context.graph();
  const auto producer = graph.tensor(before_scaling(graph, context.input(1))).producer;
  if (!producer || graph.op(*producer).op_type != ops::Concat)
    return std::nullopt;
  const auto& parts = graph.op(*producer).inputs;
  const auto is_weight = [&](const auto& part) {
    return part && graph.tensor(storage_root(graph, *part)).kind == TensorKind::parameter;
  };
  const bool split = parts.size() == 2 && is_weight(parts[0]) && is_weight(parts[1]) &&
                     context.wants_tensor(*parts[0]) && !context.wants_tensor(*parts[1]);
  return split ? parts[0] : std::nullopt;
}

/// The first elements of an axis, as a view.
TensorId leading(GradientContext& context, TensorId tensor, std::size_t axis, std::int64_t count) {
  Integers shape = context.graph().tensor(tensor).shape;
  if (shape[axis] == count)
    return tensor;
  shape[axis] = count;
  return context.emit_value({ops::Slice,
                             {tensor, context.integers({0}), context.integers({count}),
                              context.integers({static_cast<std::int64_t>(axis)})}},
                            std::move(shape));
}

/// The gradient of the first output channels of a weight from those of dY; of a convolution with
/// groups, whole groups and the inputs that they read.
void leading_channels(GradientContext& context, OpType op_type, const ProductOperands& operands,
                      TensorId part) {
  const Integers shape = context.graph().tensor(part).shape;
  const Integers whole = context.input_shape(1);
  Attributes attributes = context.op().attributes;
  const bool convolution = context.op().op_type == ops::Conv;
  const std::size_t rank = context.dy_shape().size();
  std::size_t axis = 0;
  while (shape[axis] == whole[axis])
    ++axis;
  TensorId x = operands.x;
  const std::int64_t groups = convolution ? attributes.integer("group", 1) : 1;
  if (groups > 1) {
    const std::int64_t kept = shape[axis] / (whole[axis] / groups);
    x = leading(context, x, 1, kept * whole[1]);
    attributes.set("group", kept);
  }
  const TensorId dy =
      leading(context, operands.dy_for_weight, convolution ? 1 : rank - 1, shape[axis]);
  const TensorId gradient =
      context.emit_value({op_type, {x, dy}, std::move(attributes), GradientOf::weight}, shape);
  context.give_to(part, gradient);
}

void product(GradientContext& context, const Product& types) {
  const Attributes attributes = context.op().attributes;
  const ProductOperands operands = context.product_operands();
  const bool channels = types.second == ops::ConvGradWeight || types.second == ops::GemmGradB ||
                        types.second == ops::MatMulGradB;
  const auto part = channels && context.wants(1) ? trained_part(context) : std::nullopt;
  if (part) {
    leading_channels(context, types.second, operands, *part);
  } else if (context.wants(1)) {
    context.emit(
        {types.second, {operands.x, operands.dy_for_weight}, attributes, context.kind_of(1)}, {1});
  }
  if (context.wants(0)) {
    context.emit(
        {types.first, {operands.dy_for_input, context.input(1)}, attributes, context.kind_of(0)});
  }
}

/// Gradient of a convolution's bias: dY summed over batch and space.
void convolution_bias(GradientContext& context) {
  if (!context.wants(2))
    return;
  Integers axes(context.dy_shape().size());
  std::iota(axes.begin(), axes.end(), std::int64_t{0});
  axes.erase(axes.begin() + 1);
  context.emit(
      {ops::ReduceSum, {context.dy(), context.integers(axes)}, {{"keepdims", std::int64_t{0}}}},
      {2});
}

void conv(GradientContext& context) {
  convolution_bias(context);
  product(context, {ops::ConvGradInput, ops::ConvGradWeight});
}
void conv_transpose(GradientContext& context) {
  convolution_bias(context);
  product(context, {ops::ConvTransposeGradInput, ops::ConvTransposeGradWeight});
}
/// The gradient of each operand is the same sum with that operand written.
void einsum(GradientContext& context) {
  if (context.op().inputs.size() == 1) {
    context.emit({ops::EinsumGradA, {context.dy()}, context.op().attributes});
    return;
  }
  product(context, {ops::EinsumGradA, ops::EinsumGradB});
}
void matmul(GradientContext& context) {
  product(context, {ops::MatMulGradA, ops::MatMulGradB});
}

/// Y = alpha*A*B + beta*C.
void gemm(GradientContext& context) {
  if (context.wants(2)) {
    const TensorId bias = context.reduce_to(context.dy(), context.input_shape(2));
    const double beta = context.op().attributes.number("beta", 1.0);
    if (beta == 1.0)
      context.give(2, bias);
    else
      context.emit({ops::Mul, {bias, context.scalar(beta)}}, {2});
  }
  product(context, {ops::GemmGradA, ops::GemmGradB});
}

/// Fused attention: one operator that recomputes the scores from the saved logarithms. Inputs Q, K,
/// V, mask, condition; the mask gets no gradient (it would have to be stored).
void attention(GradientContext& context) {
  GradientContext::Emit what{ops::AttentionGrad,
                             {context.dy(), context.input(0), context.input(1), context.input(2),
                              context.output(0), context.output(1)},
                             context.op().attributes,
                             GradientOf::input};
  for (std::size_t i = 3; i < context.op().inputs.size(); ++i)
    what.inputs.push_back(context.op().inputs[i]);
  GradientContext::Targets targets;
  for (std::size_t i = 0; i < 3; ++i)
    targets.push_back(context.wants(i) ? std::optional(i) : std::nullopt);
  context.emit(std::move(what), targets);
}

/// Recurrent layers are unrolled while a network is read: their parts have the gradients. This rule
/// exists for lists of operators only, and throws InternalError if it is applied.
void unrolled(GradientContext&) {
  throw InternalError("a recurrent layer was not unrolled");
}

} // namespace

std::vector<GradientRule> linear_gradients() {
  return {
      {ops::Conv, conv},     {ops::ConvTranspose, conv_transpose},
      {ops::MatMul, matmul}, {ops::Gemm, gemm},
      {ops::Einsum, einsum}, {ops::Attention, attention, nullptr, 1},
      {ops::LSTM, unrolled}, {ops::GRU, unrolled},
      {ops::RNN, unrolled},
  };
}

} // namespace monet

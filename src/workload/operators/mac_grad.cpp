// Rules of gradients of products, listed in registry.cpp. Such a gradient has the nest of the
// forward product, in which one operand is written and the result is read: equal loops, equal MACs.
//
// Inputs: the forward operands in order, with dY in place of the one to differentiate.
//   ConvGradInput (dY, W) -> dX
//     dX[b, c, s*oy + fy - p, ...] += dY[b, k, oy, ...] * W[k, c, fy, ...]
//   ConvGradWeight (X, dY) -> dW
//     dW[k, c, fy, ...] += X[b, c, s*oy + fy - p, ...] * dY[b, k, oy, ...]
#include "base/shared/checked.hpp"
#include "workload/operators/families.hpp"

#include "monet/base/errors.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <set>
#include <span>

namespace monet {

namespace {

/// Whether the terms enumerate [0, extent) exactly once, like digits of a number.
bool counts_through(const AxisExpr& axis, const LoopNest& nest, std::int64_t extent) {
  if (axis.data_dependent || axis.offset != 0)
    return false;
  std::vector<AffineTerm> terms = axis.terms;
  std::sort(terms.begin(), terms.end(),
            [](const AffineTerm& a, const AffineTerm& b) { return a.coefficient < b.coefficient; });
  std::int64_t reached = 1;
  for (const AffineTerm& term : terms) {
    if (nest.dims[term.dim].size == 1)
      continue;
    if (term.coefficient != reached)
      return false;
    reached = checked_multiply(reached, nest.dims[term.dim].size);
  }
  return reached == extent;
}

/// Whether every element belongs to one combination of loops, so that elements can be finished one
/// by one.
bool visits_each_once(const Access& access, const LoopNest& nest, const Integers& shape) {
  std::set<std::uint32_t> seen;
  for (std::size_t i = 0; i < access.axes.size(); ++i) {
    if (!counts_through(access.axes[i], nest, shape[i]))
      return false;
    for (const AffineTerm& term : access.axes[i].terms) {
      if (nest.dims[term.dim].size > 1 && !seen.insert(term.dim).second)
        return false;
    }
  }
  return true;
}

constexpr std::array kGradients{
    ProductGradients{ops::Conv, ops::ConvGradInput, ops::ConvGradWeight},
    ProductGradients{ops::ConvTranspose, ops::ConvTransposeGradInput, ops::ConvTransposeGradWeight},
    ProductGradients{ops::MatMul, ops::MatMulGradA, ops::MatMulGradB},
    ProductGradients{ops::Gemm, ops::GemmGradA, ops::GemmGradB},
    ProductGradients{ops::Einsum, ops::EinsumGradA, ops::EinsumGradB},
};

/// Nest of a gradient: `operand` 0 or 1 is the forward input it belongs to. An Einsum may have a
/// single operand.
LoopNest adjoint(const Graph& graph, const Operator& op, OpType forward_type, std::size_t operand) {
  const std::size_t operands = forward_type == ops::Einsum ? op.inputs.size() : 2;
  if (!has_output(op, 0) || operands <= operand)
    fail(graph, op, "two inputs and one output are needed");
  for (std::size_t i = 0; i < operands; ++i) {
    if (!has_input(op, i))
      fail(graph, op, "two inputs and one output are needed");
  }
  Operator forward{.name = op.name,
                   .op_type = forward_type,
                   .attributes = op.attributes,
                   .inputs = op.inputs,
                   .outputs = {op.inputs[operand]}};
  forward.inputs.resize(operands);
  forward.inputs[operand] = op.outputs[0];
  LoopNest nest = row_of(forward).nest(graph, forward);
  internal_check(nest.operands.size() == 1 + operands, "a product has its operands and a result");
  Access& result = nest.operands[0];
  Access& target = nest.operands[1 + operand];
  std::swap(result, target); // the gradient comes first, dY replaces the operand
  std::swap(result.role, target.role);
  target.mode = AccessMode::read;
  const auto& shape = graph.tensor(result.tensor).shape;
  result.mode = visits_each_once(result, nest, shape) ? AccessMode::write : AccessMode::accumulate;
  return nest;
}

/// Type of the forward product in attribute `forward`, whose two gradients are computed together.
OpType forward_of_pair(const Graph& graph, const Operator& op) {
  const OpType type = op.attributes.text("forward", "");
  if (std::ranges::find(kGradients, type, &ProductGradients::forward) == kGradients.end())
    fail(graph, op, fmt::format("'{}' is not a product", type.name()), "attribute 'forward'");
  return type;
}

} // namespace

/// ProductGrad (A, B, dY) -> (dA, dB): the loops of the forward product; both products read dY.
LoopNest build_product_grad(const Graph& graph, const Operator& op) {
  const OpType forward_type = forward_of_pair(graph, op);
  for (std::size_t i = 0; i < 3; ++i) {
    if (!has_input(op, i) || (i < 2 && !has_output(op, i)))
      fail(graph, op, "three inputs and two outputs are needed");
    if (i < 2 && output_shape(graph, op, i) != input_shape(graph, op, i))
      fail(graph, op, fmt::format("output {} has not the shape of input {}", i, i));
  }
  const Operator forward{.name = op.name,
                         .op_type = forward_type,
                         .attributes = op.attributes,
                         .inputs = {op.inputs[0], op.inputs[1]},
                         .outputs = {op.inputs[2]}};
  LoopNest nest = row_of(forward).nest(graph, forward);
  internal_check(nest.operands.size() == 3, "a product has two operands and a result");
  if (nest.compute != ComputeKind::mac)
    fail(graph, op, "nothing is summed", "attribute 'forward'");
  const std::vector<Access> of = std::move(nest.operands);
  const auto operand = [&](std::size_t like, TensorId tensor, AccessMode mode, const char* role) {
    nest.operands.push_back({tensor, mode, role, of[like].axes, of[like].passes, of[like].opaque});
  };
  operand(1, *op.outputs[0], AccessMode::write, "O");
  operand(2, *op.outputs[1], AccessMode::write, "dW");
  operand(0, *op.inputs[2], AccessMode::read, "I");
  operand(1, *op.inputs[0], AccessMode::read, "X");
  operand(2, *op.inputs[1], AccessMode::read, "W");
  for (Access& result : std::span(nest.operands).first(2)) {
    const auto& shape = graph.tensor(result.tensor).shape;
    if (!visits_each_once(result, nest, shape))
      result.mode = AccessMode::accumulate;
  }
  nest.products = {{0, 2, 4}, {1, 3, 2}};
  return nest;
}

LoopNest build_mac_grad(const Graph& graph, const Operator& op) {
  for (const ProductGradients& product : kGradients) {
    if (op.op_type == product.first || op.op_type == product.second)
      return adjoint(graph, op, product.forward, op.op_type == product.second ? 1 : 0);
  }
  throw InternalError("no forward operator for a gradient");
}

std::span<const ProductGradients> product_gradients() {
  return kGradients;
}

std::optional<GradientTensors> gradient_tensors(const Operator& op) {
  if (op.domain != kMonetDomain)
    return std::nullopt;
  const auto is = [&](OpType ProductGradients::*type) {
    return std::ranges::find(kGradients, op.op_type, type) != kGradients.end();
  };
  if (op.op_type == kProductGrad)
    return GradientTensors{*op.inputs[2], op.inputs[0], op.inputs[1], op.outputs[0], op.outputs[1]};
  if (is(&ProductGradients::first))
    return GradientTensors{*op.inputs[0], std::nullopt, op.inputs[1], op.outputs[0], std::nullopt};
  if (is(&ProductGradients::second))
    return GradientTensors{*op.inputs[1], op.inputs[0], std::nullopt, std::nullopt, op.outputs[0]};
  return std::nullopt;
}

} // namespace monet

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

constexpr char kConv[] = "Conv";
constexpr char kConvTranspose[] = "ConvTranspose";
constexpr char kMatMul[] = "MatMul";
constexpr char kGemm[] = "Gemm";
constexpr char kEinsum[] = "Einsum";
constexpr std::array kForwards{kConv, kConvTranspose, kMatMul, kGemm, kEinsum};

/// Nest of a gradient: `operand` 0 or 1 is the forward input it belongs to. An Einsum may have a
/// single operand.
LoopNest adjoint(const Graph& graph, const Operator& op, std::string_view forward_type,
                 std::size_t operand) {
  const std::size_t operands = forward_type == kEinsum ? op.inputs.size() : 2;
  if (!has_output(op, 0) || operands <= operand)
    fail(graph, op, "two inputs and one output are needed");
  for (std::size_t i = 0; i < operands; ++i) {
    if (!has_input(op, i))
      fail(graph, op, "two inputs and one output are needed");
  }
  Operator forward{.name = op.name,
                   .op_type = std::string(forward_type),
                   .attributes = op.attributes,
                   .inputs = op.inputs,
                   .outputs = {op.inputs[operand]}};
  forward.inputs.resize(operands);
  forward.inputs[operand] = op.outputs[0];
  const OperatorRule* rule = find_rule("", forward_type);
  internal_check(rule != nullptr && rule->build != nullptr, "no forward operator for a gradient");
  LoopNest nest = rule->build(graph, forward);
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

/// Rule of the forward product in attribute `forward`, whose two gradients are computed together.
const OperatorRule& forward_of_pair(const Graph& graph, const Operator& op) {
  const std::string type = op.attributes.text("forward", "");
  const bool known = std::ranges::any_of(kForwards, [&](const char* name) { return type == name; });
  if (!known)
    fail(graph, op, fmt::format("'{}' is not a product", type), "attribute 'forward'");
  return *find_rule("", type);
}

/// ProductGrad (A, B, dY) -> (dA, dB): the loops of the forward product; both products read dY.
LoopNest build_product_grad(const Graph& graph, const Operator& op) {
  const OperatorRule& rule = forward_of_pair(graph, op);
  for (std::size_t i = 0; i < 3; ++i) {
    if (!has_input(op, i) || (i < 2 && !has_output(op, i)))
      fail(graph, op, "three inputs and two outputs are needed");
    if (i < 2 && output_shape(graph, op, i) != input_shape(graph, op, i))
      fail(graph, op, fmt::format("output {} has not the shape of input {}", i, i));
  }
  const Operator forward{.name = op.name,
                         .op_type = std::string(rule.op_type),
                         .attributes = op.attributes,
                         .inputs = {op.inputs[0], op.inputs[1]},
                         .outputs = {op.inputs[2]}};
  LoopNest nest = rule.build(graph, forward);
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

template <const char* kForward, std::size_t kOperand>
LoopNest build_mac_grad(const Graph& graph, const Operator& op) {
  return adjoint(graph, op, kForward, kOperand);
}

constexpr std::array kGradients{
    ProductGradients{"Conv", "ConvGradInput", "ConvGradWeight"},
    ProductGradients{"ConvTranspose", "ConvTransposeGradInput", "ConvTransposeGradWeight"},
    ProductGradients{"MatMul", "MatMulGradA", "MatMulGradB"},
    ProductGradients{"Gemm", "GemmGradA", "GemmGradB"},
    ProductGradients{"Einsum", "EinsumGradA", "EinsumGradB"},
};

} // namespace

std::vector<OperatorRule> mac_grad_rules() {
  return {
      {kMonetDomain, "ConvGradInput", build_mac_grad<kConv, 0>},
      {kMonetDomain, "ConvGradWeight", build_mac_grad<kConv, 1>},
      {kMonetDomain, "ConvTransposeGradInput", build_mac_grad<kConvTranspose, 0>},
      {kMonetDomain, "ConvTransposeGradWeight", build_mac_grad<kConvTranspose, 1>},
      {kMonetDomain, "EinsumGradA", build_mac_grad<kEinsum, 0>},
      {kMonetDomain, "EinsumGradB", build_mac_grad<kEinsum, 1>},
      {kMonetDomain, "MatMulGradA", build_mac_grad<kMatMul, 0>},
      {kMonetDomain, "MatMulGradB", build_mac_grad<kMatMul, 1>},
      {kMonetDomain, "GemmGradA", build_mac_grad<kGemm, 0>},
      {kMonetDomain, "GemmGradB", build_mac_grad<kGemm, 1>},
      {kMonetDomain, "ProductGrad", build_product_grad},
  };
}

std::span<const ProductGradients> product_gradients() {
  return kGradients;
}

std::optional<GradientTensors> gradient_tensors(const Operator& op) {
  if (op.domain != kMonetDomain)
    return std::nullopt;
  const auto is = [&](std::string_view ProductGradients::*type) {
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

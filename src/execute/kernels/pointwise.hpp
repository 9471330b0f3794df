// Table entries for scalar functions of one iteration.
#pragma once

#include "execute/kernels/kernel.hpp"

#include <algorithm>
#include <cmath>

namespace monet {

/// Makes the kernel of an ONNX operator whose first outputs are f of its first inputs (see
/// map_block()); own() makes that of an operator of domain ai.monet.
template <Stateless F>
constexpr KernelEntry onnx(OpType op_type, F) {
  return kernel("", op_type, [](auto& context) { context.map(F{}); });
}
template <Stateless F>
constexpr KernelEntry own(OpType op_type, F) {
  return kernel(kMonetDomain, op_type, [](auto& context) { context.map(F{}); });
}

/// f with the first argument, or the first two, given: attributes of the operator.
template <Stateless F>
struct WithAttribute {
  double a;
  template <class... In>
  requires std::is_invocable_v<F, double, In...>
  auto operator()(In... in) const { return F{}(a, in...); }
};
template <Stateless F>
struct WithTwoAttributes {
  double a, b;
  template <class... In>
  requires std::is_invocable_v<F, double, double, In...>
  auto operator()(In... in) const { return F{}(a, b, in...); }
};

/// Makes the kernel of an operator whose f takes one or two attributes before the inputs.
template <Stateless F, std::size_t kCount>
constexpr KernelEntry with_attributes(std::string_view domain, OpType op_type,
                                      const NumberAttribute (&attributes)[kCount]) {
  KernelEntry entry = kernel(domain, op_type, [](auto& context) {
    const std::array<double, 2> values = attributes_of(context.op());
    if constexpr (kCount == 1)
      context.map(WithAttribute<F>{values[0]});
    else
      context.map(WithTwoAttributes<F>{values[0], values[1]});
  });
  std::ranges::copy(attributes, entry.attributes.begin());
  return entry;
}
template <std::size_t kCount, Stateless F>
constexpr KernelEntry onnx(OpType op_type, const NumberAttribute (&attributes)[kCount], F) {
  return with_attributes<F>("", op_type, attributes);
}
template <std::size_t kCount, Stateless F>
constexpr KernelEntry own(OpType op_type, const NumberAttribute (&attributes)[kCount], F) {
  return with_attributes<F>(kMonetDomain, op_type, attributes);
}
/// Makes the kernel of an ONNX operator whose function of numbers, f(op), depends on the operator.
template <Stateless F>
constexpr KernelEntry onnx_with(OpType op_type, F) {
  return kernel("", op_type, [](auto& context) { context.map(F{}(context.op())); });
}
template <Stateless F>
constexpr KernelEntry own_with(OpType op_type, F) {
  return kernel(kMonetDomain, op_type, [](auto& context) { context.map(F{}(context.op())); });
}
/// One output: f(v) of any number of inputs.
template <Stateless F>
constexpr KernelEntry onnx_of_any(OpType op_type, F) {
  return kernel("", op_type, [](auto& context) {
    context.for_each_iteration([](auto v, auto y) { y[0] = F{}(v); });
  });
}

inline bool has_input(const Operator& op, std::size_t i) {
  return i < op.inputs.size() && op.inputs[i];
}

template <class Real>
Real sigmoid(Real x) {
  if (x >= 0)
    return 1 / (1 + std::exp(-x));
  const Real e = std::exp(x);
  return e / (1 + e);
}

template <class Real>
Real softplus(Real x) {
  return std::max(x, Real{0}) + std::log1p(std::exp(-std::abs(x)));
}

template <class Real>
Real sign(Real x) {
  return static_cast<Real>((x > 0) - (x < 0));
}

} // namespace monet

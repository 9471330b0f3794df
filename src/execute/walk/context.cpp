// OperatorContext: what a kernel sees of its operator's tensors and attributes.
#include "execute/walk/context.hpp"

namespace monet {

bool OperatorContext::has_input(std::size_t i) const {
  return i < op_.inputs.size() && op_.inputs[i];
}
bool OperatorContext::has_output(std::size_t i) const {
  return i < op_.outputs.size() && op_.outputs[i];
}
TensorId OperatorContext::id_of_input(std::size_t i) const {
  return op_.inputs.at(i).value();
}
TensorId OperatorContext::id_of_output(std::size_t i) const {
  return op_.outputs.at(i).value();
}
auto OperatorContext::input_shape(std::size_t i) const -> const Shape& {
  return graph_.tensor(id_of_input(i)).shape;
}
auto OperatorContext::output_shape(std::size_t i) const -> const Shape& {
  return graph_.tensor(id_of_output(i)).shape;
}
bool OperatorContext::is_real_input(std::size_t i) const {
  return is_floating(graph_.tensor(id_of_input(i)).type);
}

OperandMap OperatorContext::map_of(std::size_t operand) const {
  const Access& access = op_.nest.operands.at(operand);
  const Shape& shape = graph_.tensor(access.tensor).shape;
  return map_operand(op_.nest, access, shape, strides_of(shape));
}

template <class Real>
double KernelContext<Real>::number(TensorId tensor, std::size_t element) const {
  const TensorNumbers<Real>& numbers = store_[tensor];
  return numbers.real.empty() ? static_cast<double>(numbers.whole.at(element))
                              : static_cast<double>(numbers.real.at(element));
}

template <class Real>
Integers& KernelContext<Real>::whole(TensorId tensor) const {
  return store_[tensor].whole;
}

template <class Real>
ElementArray KernelContext<Real>::elements(TensorId tensor) const {
  TensorNumbers<Real>& numbers = store_[tensor];
  if (numbers.real.empty())
    return {reinterpret_cast<std::byte*>(numbers.whole.data()), numbers.whole.size(),
            sizeof(std::int64_t)};
  return {reinterpret_cast<std::byte*>(numbers.real.data()), numbers.real.size(), sizeof(Real),
          true};
}

template <class Real>
std::vector<WalkedOperand<Real>> KernelContext<Real>::walked_operands(bool outputs) const {
  const auto& operands = outputs ? index_.outputs : index_.inputs;
  const auto& tensors = outputs ? op_.outputs : op_.inputs;
  std::vector<WalkedOperand<Real>> result;
  for (std::size_t i = 0; i < operands.size(); ++i) {
    if (!operands[i] || op_.nest.operands[*operands[i]].opaque)
      continue;
    WalkedOperand<Real> operand{i, map_of(*operands[i]), &store_[*tensors[i]]};
    operand.integral = operand.numbers->real.empty();
    operand.count = static_cast<std::int64_t>(operand.integral ? operand.numbers->whole.size()
                                                               : operand.numbers->real.size());
    operand.accumulates = op_.nest.operands[*operands[i]].mode == AccessMode::accumulate;
    check_reach(operand.map, op_.nest, operand.count);
    result.push_back(std::move(operand));
  }
  return result;
}

template double KernelContext<double>::number(TensorId, std::size_t) const;
template Integers& KernelContext<double>::whole(TensorId) const;
template ElementArray KernelContext<double>::elements(TensorId) const;
template std::vector<WalkedOperand<double>> KernelContext<double>::walked_operands(bool) const;
template double KernelContext<float>::number(TensorId, std::size_t) const;
template Integers& KernelContext<float>::whole(TensorId) const;
template ElementArray KernelContext<float>::elements(TensorId) const;
template std::vector<WalkedOperand<float>> KernelContext<float>::walked_operands(bool) const;

} // namespace monet

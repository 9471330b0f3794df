// Helpers of kernels that follow operands of a nest one by one.
#pragma once

#include "execute/kernels/kernel.hpp"

#include "monet/base/stop.hpp"

#include <string_view>
#include <vector>

namespace monet {

/// f(place) for every index of a tensor of that shape, the last axis fastest.
/// Heeds check_stop().
template <class F>
void for_each_place(std::span<const std::int64_t> shape, F f) {
  if (std::find(shape.begin(), shape.end(), 0) != shape.end())
    return;
  std::vector<std::int64_t> place(shape.size(), 0);
  do {
    check_stop();
    f(place);
  } while (next_point(place, shape));
}

/// f(point) for every iteration of the nest, or of its loops with `taken`, the others at 0.
template <class F>
void for_each_point(const LoopNest& nest, F f, const std::vector<bool>* taken = nullptr) {
  std::vector<std::int64_t> sizes;
  for (std::size_t d = 0; d < nest.dims.size(); ++d)
    sizes.push_back(taken == nullptr || (*taken)[d] ? nest.dims[d].size : 1);
  for_each_place(sizes, f);
}

/// An element of one tensor becomes an element of another, whatever their type.
template <class Real>
void move_element(KernelContext<Real>& context, std::size_t input, std::size_t from,
                  std::size_t output, std::size_t to) {
  if (context.is_real_input(input)) {
    context.output(output)[to] = context.input(input)[from];
  } else {
    context.output_integers(output)[to] = context.integers(input)[from];
  }
}

/// `axis` counted from the front.
inline std::size_t front_axis(std::int64_t axis, std::size_t rank) {
  return static_cast<std::size_t>(axis < 0 ? axis + static_cast<std::int64_t>(rank) : axis);
}

/// Row-major position of an index.
inline std::int64_t position_of(std::span<const std::int64_t> index,
                                std::span<const std::int64_t> strides) {
  std::int64_t position = 0;
  for (std::size_t d = 0; d < index.size(); ++d)
    position += index[d] * strides[d];
  return position;
}

/// The loop of the operator's own nest that folding views may have made this one of.
inline std::string_view own_loop(std::string_view name) {
  constexpr std::string_view kOuter = "_outer";
  while (name.ends_with(kOuter))
    name.remove_suffix(kOuter.size());
  return name;
}

/// Value of a loop of the operator's own nest.
inline std::int64_t loop_value(const LoopNest& nest, std::string_view name,
                               std::span<const std::int64_t> point) {
  std::int64_t value = 0;
  for (std::size_t d = 0; d < nest.dims.size(); ++d) {
    if (own_loop(nest.dims[d].name) == name)
      value = value * nest.dims[d].size + point[d];
  }
  return value;
}

/// An operand of which some axes are indexed by data: the rest as an affine map, and of each of
/// those axes, in order, the stride and the size.
struct IndexedOperand {
  OperandMap map;
  std::vector<std::int64_t> strides;
  std::vector<std::int64_t> sizes;
};

inline IndexedOperand indexed_operand(const Graph& graph, const Operator& op, std::size_t operand) {
  Access access = op.nest.operands[operand];
  const std::vector<std::int64_t>& shape = graph.tensor(access.tensor).shape;
  const std::vector<std::int64_t> strides = strides_of(shape);
  IndexedOperand result;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (!access.axes[i].data_dependent)
      continue;
    result.strides.push_back(strides[i]);
    result.sizes.push_back(shape[i]);
    access.axes[i] = {};
  }
  result.map = map_operand(op.nest, access, shape, strides);
  return result;
}

} // namespace monet

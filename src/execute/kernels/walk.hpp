// Helpers of kernels that follow operands of a nest one by one.
#pragma once

#include "execute/kernels/kernel.hpp"

#include "monet/base/checked.hpp"
#include "monet/base/errors.hpp"
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

/// Elements of one tensor become elements of another, whatever their type. Both are looked up once.
template <class Real>
class ElementMover {
public:
  ElementMover(KernelContext<Real>& context, std::size_t input, std::size_t output)
      : is_real_(context.is_real_input(input)) {
    if (is_real_) {
      from_ = context.input(input);
      to_ = context.output(output);
    } else {
      whole_from_ = context.integers(input);
      whole_to_ = context.output_integers(output);
    }
  }

  void operator()(std::size_t from, std::size_t to) const {
    if (is_real_) {
      to_[to] = from_[from];
    } else {
      whole_to_[to] = whole_from_[from];
    }
  }
  /// From elements `step` apart to the next ones of the other tensor.
  void run(std::int64_t from, std::int64_t step, std::size_t to, std::size_t count) const {
    if (is_real_) {
      copy(from_, from, step, to_.subspan(to, count));
    } else {
      copy(whole_from_, from, step, whole_to_.subspan(to, count));
    }
  }

private:
  /// The ends of the run say that what is between them is inside.
  template <class Number>
  static void copy(std::span<const Number> source, std::int64_t from, std::int64_t step,
                   std::span<Number> target) {
    if (target.empty())
      return;
    const auto steps = static_cast<std::int64_t>(target.size()) - 1;
    const std::int64_t last = checked_add(from, checked_multiply(step, steps));
    if (std::min(from, last) < 0 ||
        std::max(from, last) >= static_cast<std::int64_t>(source.size()))
      internal_check(false, "a run of elements leaves its tensor");
    const Number* number = source.data() + from;
    for (std::size_t i = 0; i < target.size(); ++i)
      target[i] = number[static_cast<std::int64_t>(i) * step];
  }

  bool is_real_;
  std::span<const Real> from_;
  std::span<Real> to_;
  std::span<const std::int64_t> whole_from_;
  std::span<std::int64_t> whole_to_;
};

/// Every element of output `output`: element offset + sum(stride * place) of input 0.
template <class Real>
void gather_axes(KernelContext<Real>& context, std::size_t output, std::int64_t offset,
                 std::span<const std::int64_t> strides) {
  const ElementMover<Real> move(context, 0, output);
  std::vector<std::int64_t> lines = context.output_shape(output);
  const std::int64_t run = lines.empty() ? 1 : lines.back();
  const std::int64_t step = lines.empty() ? 0 : strides[lines.size() - 1];
  if (run == 0)
    return;
  if (!lines.empty())
    lines.back() = 1;
  const auto count = static_cast<std::size_t>(run);
  std::size_t to = 0;
  for_each_place(lines, [&](const auto& place) {
    move.run(offset + weighted_sum(strides, place), step, to, count);
    to += count;
  });
}

/// Elements of output `output` along every axis: start + step * i of input 0.
template <class Real>
void copy_slice(KernelContext<Real>& context, std::size_t output,
                std::span<const std::int64_t> starts, std::span<const std::int64_t> steps) {
  std::vector<std::int64_t> strides = strides_of(context.input_shape(0));
  const std::int64_t offset = weighted_sum(starts, strides);
  for (std::size_t d = 0; d < strides.size(); ++d)
    strides[d] *= steps[d];
  gather_axes(context, output, offset, strides);
}

/// `axis` counted from the front.
inline std::size_t front_axis(std::int64_t axis, std::size_t rank) {
  return static_cast<std::size_t>(axis < 0 ? axis + static_cast<std::int64_t>(rank) : axis);
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

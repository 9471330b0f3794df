// Helpers of kernels that follow operands of a nest one by one.
#include "execute/kernels/walk.hpp"

#include "base/shared/checked.hpp"

#include "monet/base/errors.hpp"
#include "monet/base/stop.hpp"

#include <algorithm>
#include <cstring>

namespace monet {

void for_each_place(std::span<const std::int64_t> shape, PlaceFunction f) {
  if (std::ranges::find(shape, 0) != shape.end())
    return;
  Integers place(shape.size(), 0);
  const std::int64_t run = shape.empty() ? 1 : shape.back();
  do {
    for (std::int64_t i = 0; i < run; ++i) {
      if (!place.empty())
        place.back() = i;
      check_stop();
      f(place);
    }
  } while (next_point(place, shape));
}

void for_each_point(const LoopNest& nest, PlaceFunction f, const std::vector<bool>* taken) {
  Integers sizes;
  for (std::size_t d = 0; d < nest.dims.size(); ++d)
    sizes.push_back(taken == nullptr || (*taken)[d] ? nest.dims[d].size : 1);
  for_each_place(sizes, f);
}

namespace {

/// Element types are copied as bytes; the size is constant so that each copy is one instruction.
template <std::size_t kSize>
void copy_run(const std::byte* from, std::int64_t step, std::byte* to, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i)
    std::memcpy(to + i * kSize, from + static_cast<std::int64_t>(i * kSize) * step, kSize);
}

} // namespace

ElementMover::ElementMover(OperatorContext& context, std::size_t input, std::size_t output)
    : from_(context.input_elements(input)), to_(context.output_elements(output)) {
  internal_check(from_.is_real == to_.is_real || from_.count == 0 || to_.count == 0,
                 "elements move between tensors of different types");
}

void ElementMover::operator()(std::size_t from, std::size_t to) const {
  if (from >= from_.count || to >= to_.count)
    internal_check(false, "an element is outside of its tensor");
  if (from_.size == sizeof(double))
    std::memcpy(to_.data + to * sizeof(double), from_.data + from * sizeof(double), sizeof(double));
  else
    std::memcpy(to_.data + to * sizeof(float), from_.data + from * sizeof(float), sizeof(float));
}

void ElementMover::run(std::int64_t from, std::int64_t step, std::size_t to,
                       std::size_t count) const {
  if (count == 0)
    return;
  // If both ends of the run are inside the tensor, all elements between them are.
  const std::int64_t last =
      checked_add(from, checked_multiply(step, static_cast<std::int64_t>(count) - 1));
  if (std::min(from, last) < 0 || std::max(from, last) >= static_cast<std::int64_t>(from_.count) ||
      to >= to_.count || count > to_.count - to)
    internal_check(false, "a run of elements leaves its tensor");
  const std::byte* source = from_.data + from * static_cast<std::int64_t>(from_.size);
  std::byte* target = to_.data + to * to_.size;
  if (from_.size == sizeof(double))
    copy_run<sizeof(double)>(source, step, target, count);
  else
    copy_run<sizeof(float)>(source, step, target, count);
}

void gather_axes(OperatorContext& context, std::size_t output, std::int64_t offset,
                 std::span<const std::int64_t> strides) {
  const ElementMover move(context, 0, output);
  Integers lines = context.output_shape(output);
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

void copy_slice(OperatorContext& context, std::size_t output, std::span<const std::int64_t> starts,
                std::span<const std::int64_t> steps) {
  Integers strides = strides_of(context.input_shape(0));
  const std::int64_t offset = weighted_sum(starts, strides);
  for (std::size_t d = 0; d < strides.size(); ++d)
    strides[d] *= steps[d];
  gather_axes(context, output, offset, strides);
}

template <class Real>
void copy_through_nest(KernelContext<Real>& context) {
  context.for_each_block([](const IterationBlock<Real>& block) {
    for (Real* const result : block.out)
      std::copy_n(block.in[0], block.count, result);
  });
}
template void copy_through_nest(KernelContext<double>&);
template void copy_through_nest(KernelContext<float>&);

std::size_t front_axis(std::int64_t axis, std::size_t rank) {
  return static_cast<std::size_t>(axis < 0 ? axis + static_cast<std::int64_t>(rank) : axis);
}

std::string_view own_loop(std::string_view name) {
  constexpr std::string_view kOuter = "_outer";
  while (name.ends_with(kOuter))
    name.remove_suffix(kOuter.size());
  return name;
}

std::int64_t loop_value(const LoopNest& nest, std::string_view name,
                        std::span<const std::int64_t> point) {
  std::int64_t value = 0;
  for (std::size_t d = 0; d < nest.dims.size(); ++d) {
    if (own_loop(nest.dims[d].name) == name)
      value = value * nest.dims[d].size + point[d];
  }
  return value;
}

IndexedOperand indexed_operand(const OperatorContext& context, std::size_t operand) {
  const LoopNest& nest = context.op().nest;
  Access access = nest.operands[operand];
  const Integers& shape = context.graph().tensor(access.tensor).shape;
  const Integers strides = strides_of(shape);
  IndexedOperand result;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (!access.axes[i].data_dependent)
      continue;
    result.strides.push_back(strides[i]);
    result.sizes.push_back(shape[i]);
    access.axes[i] = {};
  }
  result.map = map_operand(nest, access, shape, strides);
  return result;
}

} // namespace monet

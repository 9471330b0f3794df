// Helpers of kernels that follow operands of a nest one by one.
#pragma once

#include "execute/kernels/kernel.hpp"

#include <string_view>
#include <vector>

namespace monet {

using PlaceFunction = FunctionRef<const Integers&>;

/// f(place) for every index of a tensor of that shape, the last axis fastest.
/// Heeds check_stop().
void for_each_place(std::span<const std::int64_t> shape, PlaceFunction f);

/// f(point) for every iteration of the nest, or of its loops with `taken`, the others at 0.
void for_each_point(const LoopNest& nest, PlaceFunction f,
                    const std::vector<bool>* taken = nullptr);

/// Elements of an input become elements of an output, whatever their type. Both are looked up once.
/// InternalError for an element that is in neither.
class ElementMover {
public:
  ElementMover(OperatorContext& context, std::size_t input, std::size_t output);

  void operator()(std::size_t from, std::size_t to) const;
  /// Moves elements at stride `step` to consecutive elements of the output.
  void run(std::int64_t from, std::int64_t step, std::size_t to, std::size_t count) const;

private:
  ElementArray from_, to_;
};

/// Every element of output `output`: element offset + sum(stride * place) of input 0.
void gather_axes(OperatorContext& context, std::size_t output, std::int64_t offset,
                 std::span<const std::int64_t> strides);

/// Elements of output `output` along every axis: start + step * i of input 0.
void copy_slice(OperatorContext& context, std::size_t output, std::span<const std::int64_t> starts,
                std::span<const std::int64_t> steps);

/// Copies the first input to all outputs through the nest.
template <class Real>
void copy_through_nest(KernelContext<Real>& context);

/// `axis` counted from the front.
std::size_t front_axis(std::int64_t axis, std::size_t rank);

/// The loop of the operator's own nest that folding views may have made this one of.
std::string_view own_loop(std::string_view name);

/// Value of a loop of the operator's own nest.
std::int64_t loop_value(const LoopNest& nest, std::string_view name,
                        std::span<const std::int64_t> point);

/// An operand of which some axes are indexed by data: the rest as an affine map, and of each of
/// those axes, in order, the stride and the size.
struct IndexedOperand {
  OperandMap map;
  Integers strides;
  Integers sizes;
};

IndexedOperand indexed_operand(const OperatorContext& context, std::size_t operand);

} // namespace monet

// Views and copies: every element of the result is an element of the input, or zero.
#include "base/shared/checked.hpp"
#include "execute/kernels/walk.hpp"
#include "workload/shared/op_types.hpp"

#include <numeric>

namespace monet {

namespace {

/// Copies all elements in order: Reshape and similar views.
constexpr auto kSameOrder = []<class Real>(KernelContext<Real>& context) {
  const bool from_real = context.is_real_input(0);
  auto& real = context.output(0);
  if (!real.empty()) {
    if (from_real) {
      real = context.input(0);
    } else {
      const auto& whole = context.integers(0);
      std::transform(whole.begin(), whole.end(), real.begin(),
                     [](std::int64_t value) { return static_cast<Real>(value); });
    }
    return;
  }
  auto& whole = context.output_integers(0);
  if (from_real) {
    std::transform(context.input(0).begin(), context.input(0).end(), whole.begin(),
                   [](Real value) { return saturated_integer(value); });
  } else {
    whole = context.integers(0);
  }
};

/// Through the nest, as integers where both are: an index may be larger than real numbers hold.
constexpr auto kCast = []<class Real>(KernelContext<Real>& context) {
  const OperandMap to = context.map_of(0);
  const OperandMap from = context.map_of_input(0);
  const bool from_real = context.is_real_input(0);
  auto& real = context.output(0);
  auto& integers = context.output_integers(0);
  const auto& real_source = context.input(0);
  const auto& integer_source = context.integers(0);
  const bool to_real = !real.empty();
  const bool truth = context.graph().tensor(*context.op().outputs[0]).type == ElementType::boolean;
  for_each_point(context.op().nest, [&](const auto& point) {
    const auto target = to.index(point);
    const auto source = from.index(point);
    const auto put = [&](auto value, std::int64_t whole) {
      if (to_real)
        real[target] = static_cast<Real>(value);
      else
        integers[target] = truth ? value != 0 : whole;
    };
    if (from_real) {
      const Real value = real_source[source];
      put(value, saturated_integer(value));
    } else {
      const std::int64_t value = integer_source[source];
      put(value, value);
    }
  });
};

constexpr auto kTranspose = [](OperatorContext& context) {
  const Integers strides = strides_of(context.input_shape(0));
  Integers order(strides.size());
  std::iota(order.rbegin(), order.rend(), std::int64_t{0});
  order = context.attributes().integers("perm", order);
  Integers permuted;
  for (const std::int64_t axis : order)
    permuted.push_back(strides.at(static_cast<std::size_t>(axis)));
  gather_axes(context, 0, 0, permuted);
};

constexpr auto kExpand = [](OperatorContext& context) {
  const auto& shape = context.input_shape(0);
  const Integers strides = strides_of(shape);
  Integers repeated(context.output_shape(0).size() - shape.size(), 0);
  for (std::size_t d = 0; d < shape.size(); ++d)
    repeated.push_back(shape[d] == 1 ? 0 : strides[d]);
  gather_axes(context, 0, 0, repeated);
};

/// Executes a view that is not affine by the view's rule: reshapes keep the order of elements, the
/// others compute the source of each element.
template <class Real>
void copy_as_view(KernelContext<Real>& context) {
  const std::string view = context.attributes().text("view", ops::Reshape);
  if (view == ops::Transpose) {
    kTranspose(context);
  } else if (view == ops::Expand) {
    kExpand(context);
  } else if (view == ops::Slice) {
    copy_slice(context, 0, context.attributes().integers("starts"),
               context.attributes().integers("steps"));
  } else {
    kSameOrder(context);
  }
}

/// Copies one element to one through the nest.
constexpr auto kCopyThroughNest = []<class Real>(KernelContext<Real>& context) {
  if (context.op().nest.operands.at(1).opaque) {
    copy_as_view(context);
    return;
  }
  copy_through_nest(context);
};

/// Collectives need several ranks, so that a kernel of one rank cannot compute them. The caller
/// that runs all ranks performs the exchange between the parts of their runs.
constexpr auto kExchange = [](OperatorContext& context) {
  internal_check(false, "'" + context.op().name + "' is a collective of several ranks");
};

} // namespace

KernelTable movement_kernels() {
  static constexpr KernelEntry kEntries[]{
      kernel("", ops::Reshape, kSameOrder),
      kernel("", ops::Flatten, kSameOrder),
      kernel("", ops::Squeeze, kSameOrder),
      kernel("", ops::Unsqueeze, kSameOrder),
      kernel("", ops::Identity, kSameOrder),
      kernel("", ops::Cast, kCast),
      kernel("", ops::CastLike, kCast),
      kernel("", ops::Transpose, kTranspose),
      kernel("", ops::Expand, kExpand),
      kernel(kMonetDomain, ops::Copy, kCopyThroughNest),
      kernel(kMonetDomain, ops::AllGather, kExchange),
      kernel(kMonetDomain, ops::AllReduce, kExchange),
      kernel(kMonetDomain, ops::AllToAll, kExchange),
      kernel(kMonetDomain, ops::ReduceScatter, kExchange),
      kernel(kMonetDomain, ops::TakeShard, kExchange),
      kernel(kMonetDomain, ops::Fetch, kSameOrder),
      kernel(kMonetDomain, ops::Offload, kSameOrder),
  };
  return kEntries;
}

} // namespace monet

// Views and copies: every element of the result is an element of the input, or zero.
#include "execute/kernels/walk.hpp"

#include "monet/base/checked.hpp"

#include <numeric>

namespace monet {

namespace {

/// The same elements in the same order: Reshape and its kin.
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
  const OperandMap from = context.map_of(*context.operand_index().inputs[0]);
  const bool from_real = context.is_real_input(0);
  const bool to_real = !context.output(0).empty();
  const bool truth = context.graph().tensor(*context.op().outputs[0]).type == ElementType::boolean;
  for_each_point(context.op().nest, [&](const auto& point) {
    const auto target = static_cast<std::size_t>(to.at(point).value());
    const auto source = static_cast<std::size_t>(from.at(point).value());
    const auto put = [&](auto value, std::int64_t whole) {
      if (to_real)
        context.output(0)[target] = static_cast<Real>(value);
      else
        context.output_integers(0)[target] = truth ? value != 0 : whole;
    };
    if (from_real) {
      const Real value = context.input(0)[source];
      put(value, saturated_integer(value));
    } else {
      const std::int64_t value = context.integers(0)[source];
      put(value, value);
    }
  });
};

/// A view that is not affine, done by the view's own rule: reshapes keep the order, the others say
/// where an element comes from.
template <class Real>
void copy_as_view(KernelContext<Real>& context);

/// One element for one through the nest.
constexpr auto kCopyThroughNest = []<class Real>(KernelContext<Real>& context) {
  if (context.op().nest.operands.at(1).opaque) {
    copy_as_view(context);
    return;
  }
  context.for_each_iteration(
      [](std::span<const Real> v, std::span<Real> y) { std::fill(y.begin(), y.end(), v[0]); });
};

/// Every element of a result whose source is known axis by axis: source_of(place, strides).
template <class Real, class F>
void gather_axes(KernelContext<Real>& context, F source_of) {
  const auto from_strides = strides_of(context.input_shape(0));
  std::size_t i = 0;
  for_each_place(context.output_shape(0), [&](const auto& place) {
    move_element(context, 0, static_cast<std::size_t>(source_of(place, from_strides)), 0, i++);
  });
}

constexpr auto kTranspose = []<class Real>(KernelContext<Real>& context) {
  std::vector<std::int64_t> order(context.input_shape(0).size());
  std::iota(order.rbegin(), order.rend(), std::int64_t{0});
  order = context.attributes().integers("perm", order);
  gather_axes(context, [&](const auto& place, const auto& strides) {
    std::int64_t from = 0;
    for (std::size_t d = 0; d < place.size(); ++d)
      from += place[d] * strides[static_cast<std::size_t>(order[d])];
    return from;
  });
};

constexpr auto kExpand = []<class Real>(KernelContext<Real>& context) {
  const auto& shape = context.input_shape(0);
  gather_axes(context, [&](const auto& place, const auto& strides) {
    std::int64_t from = 0;
    const std::size_t dropped = place.size() - shape.size();
    for (std::size_t d = 0; d < shape.size(); ++d)
      from += shape[d] == 1 ? 0 : place[dropped + d] * strides[d];
    return from;
  });
};

template <class Real>
void copy_as_view(KernelContext<Real>& context) {
  const std::string view = context.attributes().text("view", "Reshape");
  if (view == "Transpose") {
    kTranspose(context);
  } else if (view == "Expand") {
    kExpand(context);
  } else if (view == "Slice") {
    const auto starts = context.attributes().integers("starts");
    const auto steps = context.attributes().integers("steps");
    gather_axes(context, [&](const auto& place, const auto& strides) {
      std::int64_t from = 0;
      for (std::size_t d = 0; d < place.size(); ++d)
        from += (starts[d] + steps[d] * place[d]) * strides[d];
      return from;
    });
  } else {
    kSameOrder(context);
  }
}

} // namespace

std::vector<KernelEntry> movement_kernels() {
  return {
      kernel("", "Reshape", kSameOrder),
      kernel("", "Flatten", kSameOrder),
      kernel("", "Squeeze", kSameOrder),
      kernel("", "Unsqueeze", kSameOrder),
      kernel("", "Identity", kSameOrder),
      kernel("", "Cast", kCast),
      kernel("", "CastLike", kCast),
      kernel("", "Transpose", kTranspose),
      kernel("", "Expand", kExpand),
      kernel(kMonetDomain, "Copy", kCopyThroughNest),
      kernel(kMonetDomain, "Fetch", kSameOrder),
      kernel(kMonetDomain, "Offload", kSameOrder),
  };
}

} // namespace monet

// Views and copies: every element of the result is an element of the input, or zero.
#include "execute/kernel.hpp"

#include <array>
#include <numeric>

namespace monet {

namespace {

/// The same elements in the same order: Reshape and its kin, Cast.
struct SameOrder {
  template <class Real>
  static void run(KernelContext<Real>& context) {
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
                     [](Real value) { return static_cast<std::int64_t>(value); });
    } else {
      whole = context.integers(0);
    }
  }
};

/// A view that is not affine, done by the view's own rule: reshapes keep the order, the others say
/// where an element comes from.
template <class Real>
void copy_as_view(KernelContext<Real>& context);

/// One element for one through the nest.
struct CopyThroughNest {
  template <class Real>
  static void run(KernelContext<Real>& context) {
    if (context.op().nest.operands.at(1).opaque) {
      copy_as_view(context);
      return;
    }
    context.for_each_iteration(
        [](std::span<const Real> v, std::span<Real> y) { std::fill(y.begin(), y.end(), v[0]); });
  }
};

/// f(to, from) for every element of a result whose source is known axis by axis.
template <class Real, class F>
void gather_axes(KernelContext<Real>& context, F source_of) {
  const auto& to = context.output_shape(0);
  const auto from_strides = strides_of(context.input_shape(0));
  std::vector<std::int64_t> place(to.size(), 0);
  std::size_t i = 0;
  if (std::find(to.begin(), to.end(), 0) != to.end())
    return;
  do {
    std::int64_t from = source_of(place, from_strides);
    const auto at = static_cast<std::size_t>(from);
    if (context.is_real_input(0)) {
      context.output(0)[i] = context.input(0)[at];
    } else {
      context.output_integers(0)[i] = context.integers(0)[at];
    }
    ++i;
  } while (next_point(place, to));
}

struct Transpose {
  template <class Real>
  static void run(KernelContext<Real>& context) {
    std::vector<std::int64_t> order(context.input_shape(0).size());
    std::iota(order.rbegin(), order.rend(), std::int64_t{0});
    order = context.attributes().integers("perm", order);
    gather_axes(context, [&](const auto& place, const auto& strides) {
      std::int64_t from = 0;
      for (std::size_t d = 0; d < place.size(); ++d)
        from += place[d] * strides[static_cast<std::size_t>(order[d])];
      return from;
    });
  }
};

struct Expand {
  template <class Real>
  static void run(KernelContext<Real>& context) {
    const auto& shape = context.input_shape(0);
    gather_axes(context, [&](const auto& place, const auto& strides) {
      std::int64_t from = 0;
      const std::size_t dropped = place.size() - shape.size();
      for (std::size_t d = 0; d < shape.size(); ++d)
        from += shape[d] == 1 ? 0 : place[dropped + d] * strides[d];
      return from;
    });
  }
};

template <class Real>
void copy_as_view(KernelContext<Real>& context) {
  const std::string view = context.attributes().text("view", "Reshape");
  if (view == "Transpose") {
    Transpose::run(context);
  } else if (view == "Expand") {
    Expand::run(context);
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
    SameOrder::run(context);
  }
}

constexpr std::array kKernels{
    kernel<SameOrder>("", "Reshape"),  kernel<SameOrder>("", "Flatten"),
    kernel<SameOrder>("", "Squeeze"),  kernel<SameOrder>("", "Unsqueeze"),
    kernel<SameOrder>("", "Identity"), kernel<SameOrder>("", "Cast"),
    kernel<SameOrder>("", "CastLike"), kernel<Transpose>("", "Transpose"),
    kernel<Expand>("", "Expand"),      kernel<CopyThroughNest>(kMonetDomain, "Copy"),
};

} // namespace

std::span<const KernelEntry> movement_kernels() {
  return kKernels;
}

} // namespace monet

// Pooling over windows and over everything. Padding never wins a maximum; what an average divides
// by is counted as PyTorch does.
#include "execute/kernels/walk.hpp"
#include "workload/shared/operators.hpp"

#include <fmt/core.h>

#include <cmath>

namespace monet {

namespace {

/// Loops that an operand lacks: the positions in a window.
std::vector<bool> loops_without(const LoopNest& nest, const OperandMap& map) {
  std::vector<bool> lacking;
  for (std::size_t d = 0; d < nest.dims.size(); ++d)
    lacking.push_back(map.strides[d] == 0);
  return lacking;
}

/// Place of a row-major element when spatial axes count the other way round, the first one fastest.
std::int64_t column_major(std::int64_t at, std::span<const std::int64_t> shape) {
  std::int64_t place = 0;
  std::int64_t size = 1;
  for (const std::int64_t extent : shape.subspan(2))
    size *= extent;
  std::int64_t rest = at % size;
  std::int64_t row_stride = size;
  std::int64_t column_stride = 1;
  for (const std::int64_t extent : shape.subspan(2)) {
    row_stride /= extent;
    place += rest / row_stride * column_stride;
    rest %= row_stride;
    column_stride *= extent;
  }
  return at - at % size + place;
}

/// Output 1: the winner's place in its window, or its place in the whole input as ONNX has it.
constexpr auto kMaxPool = []<class Real>(KernelContext<Real>& context) {
  const bool in_window = context.attributes().integer("window_indices", 0) != 0;
  const bool indexed = context.has_output(1);
  const bool by_columns = context.attributes().integer("storage_order", 0) != 0;
  const auto& shape = context.input_shape(0);
  context.for_each_group([&](auto& group) {
    const auto x = group.in(0);
    const auto address = group.address(0).first(x.size());
    std::size_t best = x.size();
    Real most = 0;
    for (std::size_t i = 0; i < x.size(); ++i) {
      if (address[i] < 0 || (best != x.size() && !(x[i] > most || std::isnan(x[i]))))
        continue;
      best = i;
      most = x[i];
    }
    if (best == x.size())
      return;
    group.out(0)[0] = x[best];
    if (!indexed)
      return;
    const std::int64_t place = by_columns ? column_major(address[best], shape) : address[best];
    group.out_integers(1)[0] = in_window ? static_cast<std::int64_t>(best) : place;
  });
};

template <class Real>
void add_by_address(KernelContext<Real>& context) {
  const LoopNest& nest = context.op().nest;
  const OperandMap from = context.map_of_input(0);
  const OperandMap index = context.map_of_input(1);
  std::vector<bool> outputs = loops_without(nest, from);
  outputs.flip();
  const auto& places = context.integers(1);
  const auto& in = context.input(0);
  auto& out = context.output(0);
  for_each_point(
      context.op().nest,
      [&](const auto& point) {
        const auto at = places[index.index(point)];
        out[static_cast<std::size_t>(at)] += in[from.index(point)];
      },
      &outputs);
}

constexpr auto kMaxPoolGrad = []<class Real>(KernelContext<Real>& context) {
  if (context.attributes().integer("window_indices", 0) == 0) {
    add_by_address(context);
    return;
  }
  const std::size_t dy = *context.operand_index().inputs[0];
  const auto window = loops_without(context.op().nest, context.map_of(dy));
  context.for_each_group(window, [](auto& group) {
    group.out(0)[static_cast<std::size_t>(group.integers(1)[0])] = group.in(0)[0];
  });
};

/// Divisor of the sum over a window: its elements inside the input. With count_include_pad, it is
/// those inside the padded input, which rounded-up windows may leave.
class WindowCount {
public:
  WindowCount(const OperatorContext& context, std::size_t operand, std::vector<bool> window)
      : nest_(context.op().nest), access_(nest_.operands[operand]),
        shape_(context.graph().tensor(access_.tensor).shape), window_(std::move(window)) {
    const Attributes& attributes = context.attributes();
    padding_counts_ = attributes.integer("count_include_pad", 0) != 0;
    rounds_up_ = attributes.integer("ceil_mode", 0) != 0;
    behind_.assign(shape_.size(), 0);
    const auto pads = attributes.integers("pads");
    const std::size_t axes = pads.size() / 2;
    for (std::size_t i = 0; i < axes && shape_.size() == axes + 2; ++i)
      behind_[2 + i] = pads[axes + i];
  }

  /// At the point of the other loops.
  std::int64_t at(const Integers& outer) const {
    std::int64_t count = 0;
    for_each_point(
        nest_,
        [&](const auto& inner) {
          bool counts = true;
          for (std::size_t i = 0; i < shape_.size(); ++i) {
            std::int64_t index = access_.axes[i].offset;
            for (const AffineTerm& term : access_.axes[i].terms)
              index += term.coefficient * (outer[term.dim] + inner[term.dim]);
            const std::int64_t end = padding_counts_ ? shape_[i] + behind_[i] : shape_[i];
            const bool checked = !padding_counts_ || rounds_up_;
            counts = counts && (!checked || (index < end && (padding_counts_ || index >= 0)));
          }
          count += counts ? 1 : 0;
        },
        &window_);
    return std::max<std::int64_t>(count, 1);
  }

private:
  const LoopNest& nest_;
  const Access& access_;
  const Integers& shape_;
  std::vector<bool> window_;
  Integers behind_; ///< padding after the last element, per axis
  bool padding_counts_ = false;
  bool rounds_up_ = false;
};

/// The mean over every window, or with `backward` dY shared out to it.
template <class Real>
void average(KernelContext<Real>& context, bool backward) {
  const LoopNest& nest = context.op().nest;
  const std::size_t small_operand = backward ? *context.operand_index().inputs[0] : 0;
  const std::size_t large_operand = backward ? 0 : *context.operand_index().inputs[0];
  const OperandMap small = context.map_of(small_operand);
  const OperandMap large = context.map_of(large_operand);
  const std::vector<bool> window = loops_without(nest, small);
  std::vector<bool> places = window;
  places.flip();
  const WindowCount count(context, large_operand, window);
  auto& out = context.output(0);
  const auto& in = context.input(0);
  for_each_point(
      context.op().nest,
      [&](const auto& place) {
        const auto divisor = static_cast<Real>(count.at(place));
        const auto one = small.index(place);
        Integers point = place;
        for_each_point(
            nest,
            [&](const auto& inner) {
              for (std::size_t d = 0; d < point.size(); ++d)
                point[d] = place[d] + inner[d];
              const auto element = large.at(point);
              if (!element)
                return;
              const auto many = static_cast<std::size_t>(*element);
              out[backward ? many : one] += in[backward ? one : many] / divisor;
            },
            &window);
      },
      &places);
}

constexpr auto kAveragePool = []<class Real>(KernelContext<Real>& context) {
  average(context, false);
};
constexpr auto kAveragePoolGrad = []<class Real>(KernelContext<Real>& context) {
  average(context, true);
};

constexpr auto kGlobalAveragePool = []<class Real>(KernelContext<Real>& context) {
  context.for_each_group([](auto& group) {
    Real sum = 0;
    for (const Real x : group.in(0))
      sum += x;
    group.out(0)[0] = sum / static_cast<Real>(group.size());
  });
};

/// The p-norm of a window.
constexpr auto kLpPool = []<class Real>(KernelContext<Real>& context) {
  const auto p = static_cast<Real>(context.attributes().integer("p", 2));
  context.for_each_group([&](auto& group) {
    Real sum = 0;
    for (const Real x : group.in(0))
      sum += std::pow(std::abs(x), p);
    group.out(0)[0] = std::pow(sum, 1 / p);
  });
};

/// dX = dY * sign(x) * (|x| / y)^(p - 1); zero where the window is.
constexpr auto kLpPoolGrad = []<class Real>(KernelContext<Real>& context) {
  const auto p = static_cast<Real>(context.attributes().integer("p", 2));
  const auto window = loops_without(context.op().nest, context.map_of_input(0));
  context.for_each_group(window, [&](auto& group) {
    const Real y = group.in(2)[0];
    const Real dy = group.in(0)[0];
    const auto x = group.in(1);
    const auto dx = group.out(0).first(x.size());
    for (std::size_t i = 0; y > 0 && i < x.size(); ++i) {
      const auto sign = static_cast<Real>((x[i] > 0) - (x[i] < 0));
      dx[i] = dy * sign * std::pow(std::abs(x[i]) / y, p - 1);
    }
  });
};

/// f(of_small, of_large): where an element of the pooled tensor is in the one that indices count
/// through.
void for_each_unpooled(OperatorContext& context, std::size_t small_operand,
                       std::span<const std::int64_t> large,
                       FunctionRef<std::size_t, std::size_t> f) {
  const LoopNest& nest = context.op().nest;
  const OperandMap small = context.map_of(small_operand);
  const OperandMap index = context.map_of_input(1);
  std::int64_t plane = 1;
  for (const std::int64_t extent : large.subspan(2))
    plane *= extent;
  const auto& places = context.integers(1);
  for_each_point(context.op().nest, [&](const auto& point) {
    const std::int64_t begin =
        (loop_value(nest, "B", point) * large[1] + loop_value(nest, "C", point)) * plane;
    const std::int64_t at = places[index.index(point)];
    if (at < begin || at >= begin + plane)
      throw InputError(
          location_of(context.graph(), context.op()),
          fmt::format("index {} is outside its channel's {} to {}", at, begin, begin + plane - 1));
    f(small.index(point), static_cast<std::size_t>(at));
  });
}

constexpr auto kMaxUnpool = [](OperatorContext& context) {
  for_each_unpooled(context, *context.operand_index().inputs[0], context.output_shape(0),
                    ElementMover(context, 0, 0));
};
constexpr auto kMaxUnpoolGrad = [](OperatorContext& context) {
  const ElementMover move(context, 0, 0);
  for_each_unpooled(context, 0, context.input_shape(0),
                    [&](std::size_t small, std::size_t large) { move(large, small); });
};

/// Local response normalisation: Y = X * s^-beta, s = bias + alpha / size * (squares of the
/// neighbouring channels summed).
struct ResponseSettings {
  std::int64_t size, before;
  double alpha, beta, bias;

  explicit ResponseSettings(const Attributes& attributes)
      : size(attributes.integer("size", 1)), before((size - 1) / 2),
        alpha(attributes.number("alpha", 1e-4) / static_cast<double>(size)),
        beta(attributes.number("beta", 0.75)), bias(attributes.number("bias", 1.0)) {}
};

constexpr auto kLocalResponse = []<class Real>(KernelContext<Real>& context) {
  const ResponseSettings how(context.attributes());
  const auto own = static_cast<std::size_t>(how.before);
  context.for_each_group([&](auto& group) {
    Real sum = 0;
    for (const Real x : group.in(0))
      sum += x * x;
    const Real s = static_cast<Real>(how.bias) + static_cast<Real>(how.alpha) * sum;
    group.out(0)[0] = group.in(0)[own] * std::pow(s, static_cast<Real>(-how.beta));
  });
};

/// dX_i = dY_i s_i^-beta - 2 alpha beta / size * X_i * sum over j that have i as neighbour of
/// dY_j X_j s_j^-(beta + 1).
constexpr auto kLocalResponseGrad = []<class Real>(KernelContext<Real>& context) {
  const ResponseSettings how(context.attributes());
  const auto& shape = context.output_shape(0);
  const std::int64_t channels = shape[1];
  std::int64_t pixels = 1;
  for (std::size_t i = 2; i < shape.size(); ++i)
    pixels *= shape[i];
  const auto at = [&](std::int64_t image, std::int64_t channel, std::int64_t pixel) {
    return static_cast<std::size_t>((image * channels + channel) * pixels + pixel);
  };
  const auto& dy = context.input(0);
  const auto& x = context.input(1);
  auto& dx = context.output(0);
  for (std::int64_t outer = 0; outer < shape[0] * pixels; ++outer) {
    check_stop();
    const std::int64_t image = outer / pixels;
    const std::int64_t pixel = outer % pixels;
    for (std::int64_t j = 0; j < channels; ++j) {
      const std::int64_t begin = std::max<std::int64_t>(j - how.before, 0);
      const std::int64_t end = std::min(j - how.before + how.size, channels);
      Real sum = 0;
      for (std::int64_t i = begin; i < end; ++i)
        sum += x[at(image, i, pixel)] * x[at(image, i, pixel)];
      const Real s = static_cast<Real>(how.bias) + static_cast<Real>(how.alpha) * sum;
      const std::size_t own = at(image, j, pixel);
      const Real power = std::pow(s, static_cast<Real>(-how.beta));
      dx[own] += dy[own] * power;
      const Real shared =
          static_cast<Real>(-2 * how.alpha * how.beta) * dy[own] * x[own] * power / s;
      for (std::int64_t i = begin; i < end; ++i)
        dx[at(image, i, pixel)] += shared * x[at(image, i, pixel)];
    }
  }
};

} // namespace

KernelTable pooling_kernels() {
  static constexpr KernelEntry kEntries[]{
      kernel("", ops::LRN, kLocalResponse),
      kernel(kMonetDomain, ops::LRNGrad, kLocalResponseGrad),
      kernel("", ops::MaxPool, kMaxPool),
      kernel(kMonetDomain, ops::MaxPool, kMaxPool),
      kernel("", ops::GlobalMaxPool, kMaxPool),
      kernel(kMonetDomain, ops::MaxPoolGrad, kMaxPoolGrad),
      kernel("", ops::AveragePool, kAveragePool),
      kernel(kMonetDomain, ops::AveragePoolGrad, kAveragePoolGrad),
      kernel("", ops::GlobalAveragePool, kGlobalAveragePool),
      kernel("", ops::LpPool, kLpPool),
      kernel("", ops::GlobalLpPool, kLpPool),
      kernel(kMonetDomain, ops::LpPoolGrad, kLpPoolGrad),
      kernel("", ops::MaxUnpool, kMaxUnpool),
      kernel(kMonetDomain, ops::MaxUnpoolGrad, kMaxUnpoolGrad),
  };
  return kEntries;
}

} // namespace monet

// Normalisations and their gradients. A row is what shares statistics: a channel of the batch, a
// row of features, a group of channels of one sample.
#include "execute/kernels/pointwise.hpp"
#include "workload/shared/op_types.hpp"

#include <cmath>

namespace monet {

namespace {

constexpr double kEpsilon = 1e-5; ///< of ONNX's definitions

template <class Real>
Real epsilon_of(const KernelContext<Real>& context) {
  return static_cast<Real>(context.attributes().number("epsilon", kEpsilon));
}

template <class Real>
struct Statistics {
  Real mean = 0;
  Real variance = 0; ///< of the whole population
};

template <class Real>
Statistics<Real> statistics_of(std::span<const Real> x) {
  Statistics<Real> found;
  const auto count = static_cast<Real>(x.size());
  for (const Real element : x)
    found.mean += element;
  found.mean /= count;
  for (const Real element : x)
    found.variance += (element - found.mean) * (element - found.mean);
  found.variance /= count;
  return found;
}

/// An operand of a row that may be left out.
template <class Real>
class Optional {
public:
  /// `row` is empty or has `size` elements.
  Optional(std::span<const Real> row, std::size_t size, Real fallback)
      : row_(row.empty() ? nullptr : row.first(size).data()), fallback_(fallback) {}
  /// Element `i`, which must be below `size`.
  Real operator[](std::size_t i) const { return row_ == nullptr ? fallback_ : row_[i]; }

private:
  const Real* row_;
  Real fallback_;
};

template <class Real, class Group>
Optional<Real> operand(const KernelContext<Real>& context, const Group& group, std::size_t input,
                       double fallback) {
  return {context.has_input(input) ? group.in(input) : std::span<const Real>{}, group.size(),
          static_cast<Real>(fallback)};
}

template <class Real>
void write_scaled(std::span<const Real> x, Real mean, Real inverse, Optional<Real> scale,
                  Optional<Real> bias, std::span<Real> y) {
  y = y.first(x.size());
  for (std::size_t i = 0; i < x.size(); ++i)
    y[i] = (x[i] - mean) * inverse * scale[i] + bias[i];
}

/// Writes Y and, from output `first` on where they are wanted, the mean and the inverse deviation.
template <class Real, class Group>
Statistics<Real> normalise(const KernelContext<Real>& context, Group& group, Real epsilon,
                           std::size_t first) {
  const Statistics<Real> found = statistics_of(group.in(0));
  const Real inverse = 1 / std::sqrt(found.variance + epsilon);
  write_scaled<Real>(group.in(0), found.mean, inverse, operand(context, group, 1, 1.0),
                     operand(context, group, 2, 0.0), group.out(0));
  if (context.has_output(first))
    group.out(first)[0] = found.mean;
  if (context.has_output(first + 1))
    group.out(first + 1)[0] = inverse;
  return found;
}

/// dX of a row: inverse * (g - mean(g) - xhat * mean(g * xhat)), g = scale * dY.
template <class Real>
void write_gradient(std::span<const Real> dy, std::span<const Real> x, Optional<Real> scale,
                    Real mean, Real inverse, std::span<Real> dx) {
  dy = dy.first(x.size());
  dx = dx.first(x.size());
  Real sum = 0;
  Real sum_xhat = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const Real g = dy[i] * scale[i];
    sum += g;
    sum_xhat += g * (x[i] - mean) * inverse;
  }
  const auto count = static_cast<Real>(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) {
    const Real xhat = (x[i] - mean) * inverse;
    dx[i] = inverse * (dy[i] * scale[i] - sum / count - xhat * sum_xhat / count);
  }
}

/// Layer, group and instance normalisation: (X, scale, bias) -> (Y, mean, inverse deviation).
constexpr auto kNormalization = []<class Real>(KernelContext<Real>& context) {
  const Real epsilon = epsilon_of(context);
  context.for_each_group([&](auto& group) { normalise(context, group, epsilon, 1); });
};

/// (dY, X, scale, mean, inverse deviation) -> dX.
constexpr auto kNormalizationGrad = []<class Real>(KernelContext<Real>& context) {
  context.for_each_group([&](auto& group) {
    write_gradient<Real>(group.in(0), group.in(1), operand(context, group, 2, 1.0), group.in(3)[0],
                         group.in(4)[0], group.out(0));
  });
};

/// (dY, X, mean, inverse deviation) -> (dscale, dbias).
constexpr auto kNormalizationGradWeight = [](auto dy, auto x, auto mean, auto inverse) {
  return std::array{dy * (x - mean) * inverse, dy};
};

/// (X, scale) -> (Y, 1 / root of the mean square).
constexpr auto kRmsNormalization = []<class Real>(KernelContext<Real>& context) {
  const Real epsilon = epsilon_of(context);
  context.for_each_group([&](auto& group) {
    const std::span<const Real> x = group.in(0);
    Real squares = 0;
    for (const Real element : x)
      squares += element * element;
    const Real inverse = 1 / std::sqrt(squares / static_cast<Real>(x.size()) + epsilon);
    write_scaled<Real>(x, 0, inverse, operand(context, group, 1, 1.0), {{}, 0, 0}, group.out(0));
    if (context.has_output(1))
      group.out(1)[0] = inverse;
  });
};

/// (dY, X, scale, 1 / root of the mean square) -> dX.
constexpr auto kRmsNormalizationGrad = []<class Real>(KernelContext<Real>& context) {
  context.for_each_group([&](auto& group) {
    const std::span<const Real> x = group.in(1);
    const auto dy = group.in(0).first(x.size());
    const auto dx = group.out(0).first(x.size());
    const Optional<Real> scale = operand(context, group, 2, 1.0);
    const Real inverse = group.in(3)[0];
    Real sum = 0;
    for (std::size_t i = 0; i < x.size(); ++i)
      sum += dy[i] * scale[i] * x[i] * inverse;
    sum /= static_cast<Real>(x.size());
    for (std::size_t i = 0; i < x.size(); ++i)
      dx[i] = inverse * (dy[i] * scale[i] - x[i] * inverse * sum);
  });
};

template <class Real>
void batch_inference(KernelContext<Real>& context) {
  const Real epsilon = epsilon_of(context);
  context.map([=](Real x, Real scale, Real bias, Real mean, Real variance) {
    return (x - mean) / std::sqrt(variance + epsilon) * scale + bias;
  });
}

/// (X, scale, bias, running mean, running variance) -> (Y, running mean, running variance, mean,
/// inverse deviation). The running variance follows the variance of the batch by ONNX's definition,
/// its unbiased estimate in a training step (domain ai.monet), as in PyTorch; `momentum` is the
/// share of the old value.
constexpr auto kBatchNormalization = []<class Real>(KernelContext<Real>& context) {
  if (context.attributes().integer("training_mode", 0) == 0) {
    batch_inference(context);
    return;
  }
  const Real epsilon = epsilon_of(context);
  const bool estimates = context.op().domain == kMonetDomain;
  const auto keep = static_cast<Real>(context.attributes().number("momentum", 0.9));
  context.for_each_group([&](auto& group) {
    const Statistics<Real> found = normalise(context, group, epsilon, 3);
    if (!context.has_input(3) || !context.has_input(4))
      return; // computed again: the running statistics have moved already
    const auto count = static_cast<Real>(group.size());
    const Real unbiased = found.variance * (estimates && count > 1 ? count / (count - 1) : 1);
    const Real results[]{keep * group.in(3)[0] + (1 - keep) * found.mean,
                         keep * group.in(4)[0] + (1 - keep) * unbiased};
    for (std::size_t i = 0; i < std::size(results); ++i) {
      if (context.has_output(i + 1))
        group.out(i + 1)[0] = results[i];
    }
  });
};

/// (dY, X, scale, mean, inverse deviation) -> (dX, dscale, dbias).
constexpr auto kBatchNormalizationGrad = []<class Real>(KernelContext<Real>& context) {
  context.for_each_group([&](auto& group) {
    const std::span<const Real> x = group.in(1);
    const auto dy = group.in(0).first(x.size());
    const Real mean = group.in(3)[0];
    const Real inverse = group.in(4)[0];
    Real sums[]{0, 0};
    for (std::size_t i = 0; i < x.size(); ++i) {
      sums[0] += dy[i] * (x[i] - mean) * inverse;
      sums[1] += dy[i];
    }
    for (std::size_t i = 0; i < 2; ++i) {
      if (context.has_output(i + 1))
        group.out(i + 1)[0] = sums[i];
    }
    if (context.has_output(0))
      write_gradient<Real>(dy, x, operand(context, group, 2, 1.0), mean, inverse, group.out(0));
  });
};

/// (dY, scale, running variance) -> dX.
constexpr auto kFixedBatchNormalizationGrad = []<class Real>(KernelContext<Real>& context) {
  const Real epsilon = epsilon_of(context);
  context.map([=](Real dy, Real scale, Real variance) {
    return dy * scale / std::sqrt(variance + epsilon);
  });
};

/// (dY, X, running mean, running variance) -> (dscale, dbias).
constexpr auto kFixedBatchNormalizationGradWeight = []<class Real>(KernelContext<Real>& context) {
  const Real epsilon = epsilon_of(context);
  context.map([=](Real dy, Real x, Real mean, Real variance) {
    return std::array{dy * (x - mean) / std::sqrt(variance + epsilon), dy};
  });
};

/// 1- or 2-norm of a row.
template <class Real>
Real norm_of(std::span<const Real> x, bool euclidean) {
  Real sum = 0;
  for (const Real element : x)
    sum += euclidean ? element * element : std::abs(element);
  return euclidean ? std::sqrt(sum) : sum;
}

constexpr auto kLpNormalization = []<class Real>(KernelContext<Real>& context) {
  const bool euclidean = context.attributes().integer("p", 2) == 2;
  context.for_each_group([&](auto& group) {
    const std::span<const Real> x = group.in(0);
    const auto y = group.out(0).first(x.size());
    const Real norm = norm_of(x, euclidean);
    for (std::size_t i = 0; i < x.size(); ++i)
      y[i] = x[i] / norm;
  });
};

/// (dY, X) -> dX.
constexpr auto kLpNormalizationGrad = []<class Real>(KernelContext<Real>& context) {
  const bool euclidean = context.attributes().integer("p", 2) == 2;
  context.for_each_group([&](auto& group) {
    const std::span<const Real> x = group.in(1);
    const auto dy = group.in(0).first(x.size());
    const auto dx = group.out(0).first(x.size());
    const Real norm = norm_of(x, euclidean);
    Real sum = 0;
    for (std::size_t i = 0; i < x.size(); ++i)
      sum += dy[i] * x[i] / norm;
    for (std::size_t i = 0; i < x.size(); ++i) {
      const Real slope = euclidean ? x[i] / norm : static_cast<Real>((x[i] > 0) - (x[i] < 0));
      dx[i] = (dy[i] - slope * sum) / norm;
    }
  });
};

/// One at the first largest element of a row, zero elsewhere.
constexpr auto kHardmax = []<class Real>(KernelContext<Real>& context) {
  context.for_each_group([](auto& group) {
    const std::span<const Real> x = group.in(0);
    const auto best = std::ranges::max_element(x) - x.begin();
    group.out(0)[static_cast<std::size_t>(best)] = 1;
  });
};

} // namespace

KernelTable normalization_kernels() {
  static constexpr KernelEntry kEntries[]{
      kernel("", ops::Hardmax, kHardmax),
      kernel("", ops::LpNormalization, kLpNormalization),
      kernel(kMonetDomain, ops::LpNormalizationGrad, kLpNormalizationGrad),
      kernel("", ops::BatchNormalization, kBatchNormalization),
      kernel(kMonetDomain, ops::BatchNormalization, kBatchNormalization),
      kernel("", ops::GroupNormalization, kNormalization),
      kernel("", ops::InstanceNormalization, kNormalization),
      kernel("", ops::LayerNormalization, kNormalization),
      kernel("", ops::RMSNormalization, kRmsNormalization),
      kernel(kMonetDomain, ops::BatchNormGrad, kBatchNormalizationGrad),
      kernel(kMonetDomain, ops::BatchNormInferenceGrad, kFixedBatchNormalizationGrad),
      kernel(kMonetDomain, ops::BatchNormInferenceGradWeight, kFixedBatchNormalizationGradWeight),
      kernel(kMonetDomain, ops::GroupNormGrad, kNormalizationGrad),
      own(ops::GroupNormGradWeight, kNormalizationGradWeight),
      kernel(kMonetDomain, ops::LayerNormGrad, kNormalizationGrad),
      own(ops::LayerNormGradWeight, kNormalizationGradWeight),
      kernel(kMonetDomain, ops::RMSNormGrad, kRmsNormalizationGrad),
      own(ops::RMSNormGradWeight, [](auto dy, auto x, auto inverse) { return dy * x * inverse; }),
  };
  return kEntries;
}

} // namespace monet

// Interpolation: along every axis an output is a weighted sum of inputs; the gradient shares out dY
// by the same weights.
#include "base/shared/checked.hpp"
#include "execute/kernels/cubic.hpp"
#include "execute/kernels/walk.hpp"
#include "workload/shared/operators.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

namespace monet {

namespace {

struct Tap {
  std::int64_t index = 0;
  double weight = 0.0;
};
/// The taps of every output along one axis.
using AxisTaps = std::vector<std::vector<Tap>>;

struct Interpolation {
  std::string mode;     ///< nearest, linear, cubic
  std::string place;    ///< coordinate_transformation_mode
  std::string rounding; ///< nearest_mode
  double cubic_a = -0.75;
  bool exclude_outside = false;
};

Interpolation interpolation_of(const Attributes& attributes) {
  Interpolation how;
  how.mode = attributes.text("mode", "nearest");
  how.place = attributes.text("coordinate_transformation_mode", "half_pixel");
  how.rounding = attributes.text("nearest_mode", "round_prefer_floor");
  how.cubic_a = attributes.number("cubic_coeff_a", -0.75);
  how.exclude_outside = attributes.integer("exclude_outside", 0) != 0;
  return how;
}

/// Place of output `i` on the axis of the input.
double coordinate(const Interpolation& how, std::int64_t i, std::int64_t in, std::int64_t out,
                  double scale) {
  const auto x = static_cast<double>(i);
  if (how.place == "align_corners")
    return out == 1 ? 0.0 : x * static_cast<double>(in - 1) / static_cast<double>(out - 1);
  if (how.place == "asymmetric")
    return x / scale;
  if (how.place == "pytorch_half_pixel" && out <= 1)
    return 0.0;
  return (x + 0.5) / scale - 0.5; // half_pixel
}

double rounded(const Interpolation& how, double x) {
  if (how.rounding == "floor")
    return std::floor(x);
  if (how.rounding == "ceil")
    return std::ceil(x);
  if (how.rounding == "round_prefer_ceil")
    return std::floor(x + 0.5);
  return std::ceil(x - 0.5); // round_prefer_floor
}

std::vector<Tap> taps_of(const Interpolation& how, double x, std::int64_t in) {
  constexpr double kOutside = 4; // from here on every tap is at the border
  x = std::clamp(x, -kOutside, static_cast<double>(in) + kOutside);
  if (how.mode == "nearest")
    return {{saturated_integer(rounded(how, x)), 1.0}};
  const auto low = saturated_integer(std::floor(x));
  const double t = x - static_cast<double>(low);
  if (how.mode == "linear")
    return {{low, 1.0 - t}, {low + 1, t}};
  const auto weights = cubic_weights(how.cubic_a, t);
  std::vector<Tap> taps;
  double sum = 0.0;
  for (std::int64_t k = 0; k < 4; ++k) {
    const std::int64_t index = low - 1 + k;
    if (how.exclude_outside && (index < 0 || index >= in))
      continue;
    taps.push_back({index, weights[static_cast<std::size_t>(k)]});
    sum += taps.back().weight;
  }
  for (Tap& tap : taps)
    tap.weight /= how.exclude_outside ? sum : 1.0;
  return taps;
}

AxisTaps axis_taps(const Interpolation& how, std::int64_t in, std::int64_t out, double scale) {
  AxisTaps taps;
  for (std::int64_t i = 0; i < out; ++i) {
    if (in == out && scale == 1.0) {
      taps.push_back({{i, 1.0}});
      continue;
    }
    taps.push_back(taps_of(how, coordinate(how, i, in, out, scale), in));
    for (Tap& tap : taps.back()) // borders are repeated
      tap.index = std::clamp<std::int64_t>(tap.index, 0, in - 1);
  }
  return taps;
}

std::vector<AxisTaps> all_taps(const Operator& op, const Graph& graph, const Integers& in,
                               const Integers& out, const std::vector<double>& scales) {
  const Interpolation how = interpolation_of(op.attributes);
  if (how.place == "tf_crop_and_resize" || how.place == "tf_half_pixel_for_nn")
    throw InputError(location_of(graph, op), fmt::format("'{}' cannot be executed", how.place));
  std::vector<AxisTaps> taps;
  for (std::size_t d = 0; d < in.size(); ++d) {
    const double ratio = static_cast<double>(out[d]) / static_cast<double>(in[d]);
    taps.push_back(axis_taps(how, in[d], out[d], d < scales.size() ? scales[d] : ratio));
  }
  return taps;
}

/// f(small, large, weight): element `large` of the output takes `weight` of element `small` of the
/// input.
void for_each_tap(const std::vector<AxisTaps>& taps, const Integers& in, const Integers& out,
                  FunctionRef<std::size_t, std::size_t, double> f) {
  const Integers strides = strides_of(in);
  Integers counts(out.size());
  std::size_t large = 0;
  for_each_place(out, [&](const Integers& place) {
    const auto taps_at = [&](std::size_t d) -> const std::vector<Tap>& {
      return taps[d][static_cast<std::size_t>(place[d])];
    };
    for (std::size_t d = 0; d < counts.size(); ++d)
      counts[d] = static_cast<std::int64_t>(taps_at(d).size());
    for_each_place(counts, [&](const Integers& choice) {
      std::int64_t small = 0;
      double weight = 1.0;
      for (std::size_t d = 0; d < choice.size(); ++d) {
        const Tap& tap = taps_at(d)[static_cast<std::size_t>(choice[d])];
        small += tap.index * strides[d];
        weight *= tap.weight;
      }
      f(static_cast<std::size_t>(small), large, weight);
    });
    ++large;
  });
}

/// Every element of one tensor, by weight, into the other: forwards, or backwards.
template <class Real>
void interpolate(KernelContext<Real>& context, bool backward, const std::vector<double>& scales) {
  const Integers& small = backward ? context.output_shape(0) : context.input_shape(0);
  const Integers& large = backward ? context.input_shape(0) : context.output_shape(0);
  const auto taps = all_taps(context.op(), context.graph(), small, large, scales);
  std::vector<Real>& out = context.output(0);
  const std::vector<Real>& in = context.input(0);
  for_each_tap(taps, small, large, [&](std::size_t of_small, std::size_t of_large, double weight) {
    out[backward ? of_small : of_large] +=
        static_cast<Real>(weight) * in[backward ? of_large : of_small];
  });
}

constexpr auto kResize = []<class Real>(KernelContext<Real>& context) {
  std::vector<double> scales;
  if (context.has_input(2))
    scales.assign(context.input(2).begin(), context.input(2).end());
  interpolate(context, false, scales);
};

constexpr auto kResizeGrad = []<class Real>(KernelContext<Real>& context) {
  std::vector<double> scales;
  const auto& all = context.attributes().all();
  if (const auto found = all.find("scales"); found != all.end())
    scales = std::get<std::vector<double>>(found->second);
  interpolate(context, true, scales);
};

} // namespace

KernelTable resize_kernels() {
  static constexpr KernelEntry kEntries[]{
      kernel("", ops::Resize, kResize),
      kernel(kMonetDomain, ops::ResizeGrad, kResizeGrad),
  };
  return kEntries;
}

} // namespace monet

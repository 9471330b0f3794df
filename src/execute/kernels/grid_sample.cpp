// GridSample and its gradients, as PyTorch's grid_sample: a sample is a weighted sum of the pixels
// around a place, places outside are zeros, moved to the border, or reflected there.
#include "execute/kernels/cubic.hpp"
#include "execute/kernels/walk.hpp"
#include "workload/shared/op_types.hpp"

#include <array>
#include <cmath>

namespace monet {

namespace {

constexpr double kCubic = -0.75;
/// Places beyond are outside of any image, whatever the padding: casts to integers stay defined.
constexpr double kFarthest = 1e15;

/// A place on an axis, in pixels, and how fast it moves with the grid's coordinate.
struct SamplePosition {
  double at = 0.0;
  double slope = 0.0;
};

/// Weight of a pixel along one axis, and how fast that changes with the grid's coordinate.
struct GridTap {
  std::int64_t index = -1; ///< -1: outside, a zero
  double weight = 0.0;
  double slope = 0.0;
};
struct GridTaps {
  std::array<GridTap, 4> all;
  std::size_t count = 0;
};

class GridInterpolation {
public:
  explicit GridInterpolation(const Attributes& attributes)
      : mode_(attributes.text("mode", "bilinear")),
        padding_(attributes.text("padding_mode", "zeros")),
        corners_(attributes.integer("align_corners", 0) != 0) {}

  GridTaps taps(double coordinate, std::int64_t size) const {
    const SamplePosition whole = in_pixels(coordinate, size);
    const SamplePosition place = mode_ == "bicubic" ? whole : padded(whole, size);
    if (!(std::abs(place.at) < kFarthest))
      return {};
    if (mode_ == "nearest")
      return {{tap(std::nearbyint(place.at), 1.0, 0.0, size)}, 1};
    const double low = std::floor(place.at);
    const double t = place.at - low;
    if (mode_ == "bilinear")
      return {{tap(low, 1.0 - t, -place.slope, size), tap(low + 1.0, t, place.slope, size)}, 2};
    const auto weights = cubic_weights(kCubic, t);
    const auto slopes = cubic_slopes(kCubic, t);
    GridTaps found{{}, weights.size()};
    for (std::size_t k = 0; k < weights.size(); ++k) {
      const SamplePosition pixel = padded({low - 1.0 + static_cast<double>(k), 0.0}, size);
      found.all[k] = tap(std::trunc(pixel.at), weights[k], slopes[k] * place.slope, size);
    }
    return found;
  }

private:
  /// -1 and 1 are the middles of the outermost pixels, or their outer edges.
  SamplePosition in_pixels(double coordinate, std::int64_t size) const {
    const auto extent = static_cast<double>(corners_ ? size - 1 : size);
    const double at = (coordinate + 1.0) / 2.0 * extent;
    return {corners_ ? at : at - 0.5, extent / 2.0};
  }

  SamplePosition padded(SamplePosition place, std::int64_t size) const {
    if (padding_ == "border")
      return clipped(place, size);
    if (padding_ == "reflection")
      return clipped(reflected(place, size), size);
    return place;
  }

  static SamplePosition clipped(SamplePosition place, std::int64_t size) {
    const auto last = static_cast<double>(size - 1);
    if (place.at <= 0.0)
      return {0.0, 0.0};
    return place.at >= last ? SamplePosition{last, 0.0} : place;
  }

  /// At the middles of the outermost pixels, or at their outer edges, as often as it takes.
  SamplePosition reflected(SamplePosition place, std::int64_t size) const {
    const double low = corners_ ? 0.0 : -0.5;
    const auto span = static_cast<double>(corners_ ? size - 1 : size);
    if (span == 0.0)
      return {};
    const double from = std::abs(place.at - low);
    const double slope = place.at < low ? -place.slope : place.slope;
    const double rest = std::fmod(from, span);
    const bool back = std::fmod(std::floor(from / span), 2.0) != 0.0;
    return back ? SamplePosition{span - rest + low, -slope} : SamplePosition{rest + low, slope};
  }

  static GridTap tap(double pixel, double weight, double slope, std::int64_t size) {
    const bool inside = pixel >= 0.0 && pixel < static_cast<double>(size);
    return {inside ? static_cast<std::int64_t>(pixel) : -1, weight, slope};
  }

  std::string mode_;
  std::string padding_;
  bool corners_;
};

/// Coordinate operand of the grid.
struct Coordinate {
  const OperatorContext& context;
  OperandMap map;
  TensorId tensor;

  Coordinate(const OperatorContext& of, std::string_view role) : context(of) {
    const auto& operands = context.op().nest.operands;
    const auto found =
        std::ranges::find_if(operands, [&](const Access& access) { return access.role == role; });
    internal_check(found != operands.end(), "a place without coordinates");
    map = context.map_of(static_cast<std::size_t>(found - operands.begin()));
    tensor = found->tensor;
  }
  double at(std::span<const std::int64_t> point) const {
    return context.number(tensor, map.index(point));
  }
};

/// f(point, pixel, row's tap, column's tap) for every pixel that an iteration's sample is made of.
void for_each_grid_tap(
    const OperatorContext& context, std::size_t image_operand,
    FunctionRef<const Integers&, std::size_t, const GridTap&, const GridTap&> f) {
  const GridInterpolation how(context.attributes());
  const IndexedOperand image = indexed_operand(context, image_operand);
  const Coordinate column(context, "x");
  const Coordinate row(context, "y");
  for_each_point(context.op().nest, [&](const auto& point) {
    const GridTaps rows = how.taps(row.at(point), image.sizes[0]);
    const GridTaps columns = how.taps(column.at(point), image.sizes[1]);
    const std::int64_t first = image.map.at(point).value();
    for (const GridTap& y : std::span(rows.all).first(rows.count)) {
      for (const GridTap& x : std::span(columns.all).first(columns.count)) {
        if (y.index >= 0 && x.index >= 0)
          f(point,
            static_cast<std::size_t>(first + y.index * image.strides[0] +
                                     x.index * image.strides[1]),
            y, x);
      }
    }
  });
}

constexpr auto kGridSample = []<class Real>(KernelContext<Real>& context) {
  const OperandMap out = context.map_of(0);
  const std::vector<Real>& image = context.input(0);
  std::vector<Real>& result = context.output(0);
  for_each_grid_tap(context, *context.operand_index().inputs[0],
                    [&](const auto& point, std::size_t pixel, const GridTap& y, const GridTap& x) {
                      result[out.index(point)] +=
                          static_cast<Real>(y.weight * x.weight) * image[pixel];
                    });
};

constexpr auto kGridSampleGradInput = []<class Real>(KernelContext<Real>& context) {
  const OperandMap map = context.map_of_input(0);
  const std::vector<Real>& dy = context.input(0);
  std::vector<Real>& dx = context.output(0);
  for_each_grid_tap(context, 0,
                    [&](const auto& point, std::size_t pixel, const GridTap& y, const GridTap& x) {
                      dx[pixel] += static_cast<Real>(y.weight * x.weight) * dy[map.index(point)];
                    });
};

constexpr auto kGridSampleGradGrid = []<class Real>(KernelContext<Real>& context) {
  const OperandMap map = context.map_of_input(0);
  const OperandMap out = context.map_of(0);
  const LoopNest& nest = context.op().nest;
  const std::vector<Real>& dy = context.input(0);
  const std::vector<Real>& image = context.input(1);
  std::vector<Real>& result = context.output(0);
  for_each_grid_tap(context, *context.operand_index().inputs[1],
                    [&](const auto& point, std::size_t pixel, const GridTap& y, const GridTap& x) {
                      const bool of_row = loop_value(nest, "D", point) == 1;
                      const double slope = of_row ? y.slope * x.weight : y.weight * x.slope;
                      result[out.index(point)] +=
                          static_cast<Real>(slope) * image[pixel] * dy[map.index(point)];
                    });
};

} // namespace

KernelTable grid_sample_kernels() {
  static constexpr KernelEntry kEntries[]{
      kernel("", ops::GridSample, kGridSample),
      kernel(kMonetDomain, ops::GridSampleGradInput, kGridSampleGradInput),
      kernel(kMonetDomain, ops::GridSampleGradGrid, kGridSampleGradGrid),
  };
  return kEntries;
}

} // namespace monet

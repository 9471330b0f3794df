// RoiAlign and its gradient, as torchvision's roi_align: a bin is the mean (or the maximum, which
// PyTorch has not) of samples that lie evenly in it. A sample up to a pixel beyond the border is
// the border's, one farther away is zero.
#include "execute/kernels/walk.hpp"
#include "workload/shared/operators.hpp"

#include <fmt/core.h>

#include <array>
#include <cmath>

namespace monet {

namespace {

/// Samples of a bin along one axis; beyond, numbers are no region.
constexpr double kMaxSamples = 1024;

/// A region's bins along one axis, in pixels.
struct BinAxis {
  double begin = 0.0;
  double size = 0.0; ///< of one bin
  std::int64_t samples = 0;

  double sample(std::int64_t bin, std::int64_t i) const {
    return begin + (static_cast<double>(bin) +
                    (static_cast<double>(i) + 0.5) / static_cast<double>(samples)) *
                       size;
  }
};

/// The two pixels that a sample lies between; none where it lies too far away.
struct Pair {
  std::int64_t low = 0, high = 0;
  double weight = 0.0; ///< of the higher one
};

std::optional<Pair> neighbours(double at, std::int64_t size) {
  if (!(at >= -1.0 && at <= static_cast<double>(size)))
    return std::nullopt;
  at = std::max(at, 0.0);
  const auto low = static_cast<std::int64_t>(at);
  if (low >= size - 1)
    return Pair{size - 1, size - 1, 0.0};
  return Pair{low, low + 1, at - static_cast<double>(low)};
}

/// A pixel of a sample.
struct RegionTap {
  std::size_t pixel = 0;
  double weight = 0.0;
};
using Sample = std::vector<RegionTap>;

class Regions {
public:
  Regions(const OperatorContext& context, std::size_t image_operand)
      : context_(context), nest_(context.op().nest),
        image_(indexed_operand(context, image_operand)),
        scale_(context.attributes().number("spatial_scale", 1.0)),
        ratio_(context.attributes().integer("sampling_ratio", 0)),
        centred_(context.attributes().text("coordinate_transformation_mode", "half_pixel") ==
                 "half_pixel") {
    constexpr std::array<std::string_view, 5> kRoles{"x1", "y1", "x2", "y2", "images"};
    for (std::size_t i = 0; i < kRoles.size(); ++i) {
      const auto found = std::ranges::find_if(
          nest_.operands, [&](const Access& access) { return access.role == kRoles[i]; });
      internal_check(found != nest_.operands.end(), "a region without corners");
      maps_[i] = context.map_of(static_cast<std::size_t>(found - nest_.operands.begin()));
      tensors_[i] = found->tensor;
    }
  }

  /// f(point, samples) for every bin and channel; samples too far outside have no pixels.
  void for_each_bin(FunctionRef<const Integers&, std::span<const Sample>> f) const {
    std::vector<Sample> samples;
    for_each_point(context_.op().nest, [&](const auto& point) {
      const BinAxis rows = bins(point, 1, context_.attributes().integer("output_height", 1));
      const BinAxis columns = bins(point, 0, context_.attributes().integer("output_width", 1));
      const std::int64_t first = image_.map.at(point).value() + image_at(point);
      samples.clear();
      for (std::int64_t y = 0; y < rows.samples; ++y) {
        for (std::int64_t x = 0; x < columns.samples; ++x)
          samples.push_back(sample(first, rows.sample(loop_value(nest_, "OY", point), y),
                                   columns.sample(loop_value(nest_, "OX", point), x)));
      }
      f(point, std::span<const Sample>(samples));
    });
  }

private:
  double corner(std::span<const std::int64_t> point, std::size_t i) const {
    return context_.number(tensors_[i], maps_[i].index(point)) * scale_ - (centred_ ? 0.5 : 0.0);
  }

  BinAxis bins(std::span<const std::int64_t> point, std::size_t axis, std::int64_t count) const {
    BinAxis found;
    found.begin = corner(point, axis);
    double extent = corner(point, axis + 2) - found.begin;
    if (!centred_)
      extent = std::max(extent, 1.0);
    found.size = extent / static_cast<double>(count);
    const double samples = ratio_ > 0 ? static_cast<double>(ratio_) : std::ceil(found.size);
    if (!(samples <= kMaxSamples))
      throw InputError(location_of(context_.graph(), context_.op()),
                       fmt::format("a region of {} pixels along an axis", extent));
    found.samples = static_cast<std::int64_t>(std::max(samples, 0.0));
    return found;
  }

  std::int64_t image_at(std::span<const std::int64_t> point) const {
    const auto at = maps_[4].index(point);
    const std::int64_t image = context_.integers(2)[at];
    if (image < 0 || image >= image_.sizes[0])
      throw InputError(location_of(context_.graph(), context_.op()),
                       fmt::format("image {} of {}", image, image_.sizes[0]));
    return image * image_.strides[0];
  }

  Sample sample(std::int64_t first, double y, double x) const {
    const auto rows = neighbours(y, image_.sizes[1]);
    const auto columns = neighbours(x, image_.sizes[2]);
    if (!rows || !columns)
      return {};
    const auto pixel = [&](std::int64_t row, std::int64_t column) {
      return static_cast<std::size_t>(first + row * image_.strides[1] + column * image_.strides[2]);
    };
    const double down = rows->weight;
    const double right = columns->weight;
    return {{pixel(rows->low, columns->low), (1.0 - down) * (1.0 - right)},
            {pixel(rows->low, columns->high), (1.0 - down) * right},
            {pixel(rows->high, columns->low), down * (1.0 - right)},
            {pixel(rows->high, columns->high), down * right}};
  }

  const OperatorContext& context_;
  const LoopNest& nest_;
  IndexedOperand image_; ///< axes indexed by data: image, row, column
  std::array<OperandMap, 5> maps_;
  std::array<TensorId, 5> tensors_;
  double scale_;
  std::int64_t ratio_;
  bool centred_;
};

template <class Real>
Real value_of(const Sample& sample, const std::vector<Real>& image) {
  Real value = 0;
  for (const RegionTap& tap : sample)
    value += static_cast<Real>(tap.weight) * image[tap.pixel];
  return value;
}

/// The first of the largest samples.
template <class Real>
std::size_t largest(std::span<const Sample> samples, const std::vector<Real>& image) {
  std::size_t best = 0;
  for (std::size_t i = 1; i < samples.size(); ++i) {
    if (value_of(samples[i], image) > value_of(samples[best], image))
      best = i;
  }
  return best;
}

bool is_maximum(const OperatorContext& context) {
  return context.attributes().text("mode", "avg") == "max";
}

constexpr auto kRoiAlign = []<class Real>(KernelContext<Real>& context) {
  const OperandMap out = context.map_of(0);
  const bool maximum = is_maximum(context);
  const auto& image = context.input(0);
  const Regions regions(context, *context.operand_index().inputs[0]);
  regions.for_each_bin([&](const auto& point, std::span<const Sample> samples) {
    if (samples.empty())
      return;
    Real& bin = context.output(0)[out.index(point)];
    if (maximum) {
      bin = value_of(samples[largest(samples, image)], image);
      return;
    }
    for (const Sample& sample : samples)
      bin += value_of(sample, image);
    bin /= static_cast<Real>(samples.size());
  });
};

constexpr auto kRoiAlignGrad = []<class Real>(KernelContext<Real>& context) {
  const OperandMap dy = context.map_of_input(0);
  const bool maximum = is_maximum(context);
  const Regions regions(context, 0);
  regions.for_each_bin([&](const auto& point, std::span<const Sample> samples) {
    if (samples.empty())
      return;
    Real share = context.input(0)[dy.index(point)];
    if (maximum)
      samples = samples.subspan(largest(samples, context.input(3)), 1);
    share /= static_cast<Real>(samples.size());
    for (const Sample& sample : samples) {
      for (const RegionTap& tap : sample)
        context.output(0)[tap.pixel] += static_cast<Real>(tap.weight) * share;
    }
  });
};

} // namespace

KernelTable roi_align_kernels() {
  static constexpr KernelEntry kEntries[]{
      kernel("", ops::RoiAlign, kRoiAlign),
      kernel(kMonetDomain, ops::RoiAlignGrad, kRoiAlignGrad),
  };
  return kEntries;
}

} // namespace monet

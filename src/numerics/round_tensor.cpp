// Rounds whole tensors in single precision with the vector kernels; the execution of graphs calls
// it.
#include "base/shared/checked.hpp"
#include "base/shared/parallel.hpp"
#include "numerics/shared/mac_engine.hpp"

#include "monet/base/errors.hpp"
#include "monet/base/units.hpp"
#include "monet/numerics/blocks.hpp"

#include <algorithm>
#include <bit>
#include <functional>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

namespace monet {

namespace {

constexpr std::size_t kRun = 1 << 15; ///< numbers per task
constexpr std::int64_t kVectorBlock = 32;

bool is_simple(const Rounding& rounding) {
  return rounding.mode == RoundTo::even && !rounding.flush_subnormals;
}

/// Whether the loops can round to the format by addition.
bool has_vector_grid(const NumberFormat& format) {
  return format.floating ? format.exponent_bits <= 7 && format.mantissa_bits <= 20
                         : format.bits() <= 22 && format.whole_bits <= 60;
}

bool round_elements(std::span<float> numbers, const NumberFormat& format, const Rounding& rounding,
                    int jobs, const lanes::Kernels& kernels) {
  if (!is_simple(rounding))
    return false;
  if (format == kSinglePrecision && !rounding.saturate)
    return true;
  if (format.floating && format.exponent_bits == 8 && !rounding.saturate) {
    parallel_runs(numbers.size(), kRun, jobs, [&](std::size_t first, std::size_t count) {
      float* at = numbers.data() + first;
      kernels.round_mantissa(at, at, static_cast<std::ptrdiff_t>(count), format.mantissa_bits);
    });
    return true;
  }
  if (!has_vector_grid(format))
    return false;
  const lanes::Grid<float> grid = grid_of<float>(format, rounding);
  parallel_runs(numbers.size(), kRun, jobs, [&](std::size_t first, std::size_t count) {
    float* at = numbers.data() + first;
    kernels.round(at, at, static_cast<std::ptrdiff_t>(count), grid);
  });
  return true;
}

/// Length of contiguous blocks that fit a vector; 0 if the blocks do not.
std::int64_t vector_block(std::int64_t row, std::int64_t width, ScaleMode mode) {
  const std::int64_t length = std::min(row, width);
  const bool fits =
      length > 1 && length <= kVectorBlock && (length & (length - 1)) == 0 && row % length == 0;
  return fits && mode == ScaleMode::floor ? length : 0;
}

/// Rounds blocks of `length` neighbours whose scale is the exponent of the largest.
void round_vector_blocks(std::span<float> numbers, const NumberFormat& element, std::int64_t length,
                         int jobs, const lanes::Kernels& kernels) {
  lanes::BlockRun all = block_run(element);
  all.length = length;
  parallel_runs(numbers.size(), kRun, jobs, [&](std::size_t first, std::size_t count) {
    lanes::BlockRun run = all;
    run.in = numbers.data() + first;
    run.out = numbers.data() + first;
    run.blocks = static_cast<std::ptrdiff_t>(count) / length;
    kernels.blocks(run);
  });
}

/// power_scale() for the bits of a magnitude, mostly without a logarithm.
double scale_of_bits(const TensorFormat& format, int largest_exponent, std::uint32_t bits) {
  const auto field = static_cast<int>(bits >> 23);
  const bool is_plain = format.blocks->mode == ScaleMode::floor && field > 0 && field < 255;
  if (!is_plain)
    return power_scale(format.element, format.blocks->mode,
                       static_cast<double>(std::bit_cast<float>(bits)));
  constexpr int kDoubleBias = 1023;
  constexpr int kSingleBias = 127;
  const int exponent = std::max(field - kSingleBias - largest_exponent, -kSingleBias);
  return std::bit_cast<double>(static_cast<std::uint64_t>(exponent + kDoubleBias) << 52);
}

/// Blocks as rows of runs. A block has `height` x `depth` rows at strides `row` and `layer`, and
/// `width` neighbours of each run of `length`.
struct BlockRuns {
  std::int64_t outer = 1; ///< independent parts of the tensor, contiguous
  std::int64_t rows = 1;
  std::int64_t height = 1;
  std::int64_t row = 0;
  std::int64_t middle = 1; ///< axes between rows and layers, merged
  std::int64_t layers = 1;
  std::int64_t depth = 1;
  std::int64_t layer = 0;
  std::int64_t length = 1;
  std::int64_t width = 1;

  std::int64_t row_blocks() const { return ceil_div(rows, height); }
  std::int64_t layer_blocks() const { return ceil_div(layers, depth); }
  std::int64_t bands() const { return outer * row_blocks() * middle * layer_blocks(); }
};

std::int64_t product_of(std::span<const std::int64_t> sizes) {
  return std::accumulate(sizes.begin(), sizes.end(), std::int64_t{1}, std::multiplies<>());
}

/// Block runs of a shape, from its axes longer than 1, outermost first; nullopt if the tensor lacks
/// a block axis.
std::optional<BlockRuns> runs_of(std::span<const std::int64_t> shape, const BlockScaling& blocks) {
  struct Extent {
    std::size_t axis;
    std::int64_t size;
  };
  const auto rank = static_cast<std::int64_t>(shape.size());
  std::vector<Extent> extents;
  for (const auto& [axis, size] :
       {std::pair{blocks.row_axis, blocks.rows}, std::pair{blocks.column_axis, blocks.columns}}) {
    const std::int64_t at = axis < 0 ? axis + rank : axis;
    if (size > 1 && (at < 0 || at >= rank))
      return std::nullopt;
    if (size > 1)
      extents.push_back({static_cast<std::size_t>(at), size});
  }
  if (extents.empty())
    return std::nullopt;
  std::ranges::sort(extents, {}, &Extent::axis);
  const Extent last = extents.back();
  BlockRuns runs;
  const std::int64_t inner = product_of(shape.subspan(last.axis + 1));
  const bool neighbours = inner == 1;
  runs.length = neighbours ? shape[last.axis] : inner;
  runs.width = neighbours ? last.size : 1;
  runs.layers = neighbours ? 1 : shape[last.axis];
  runs.depth = neighbours ? 1 : last.size;
  runs.layer = runs.length;
  if (extents.size() == 1) {
    runs.outer = product_of(shape.first(last.axis));
    return runs;
  }
  const Extent first = extents.front();
  runs.outer = product_of(shape.first(first.axis));
  runs.rows = shape[first.axis];
  runs.height = first.size;
  runs.middle = product_of(shape.subspan(first.axis + 1, last.axis - first.axis - 1));
  runs.row = runs.middle * runs.layers * runs.layer;
  return runs;
}

/// Rounds one band of blocks at a time. It first finds the largest magnitude of every column, so
/// that all loops run along neighbours.
class BandRounder {
public:
  BandRounder(const BlockRuns& runs, const TensorFormat& format, const lanes::Grid<float>& grid,
              const lanes::Kernels& kernels)
      : runs_(runs), format_(format), grid_(grid), kernels_(kernels),
        top_(largest_exponent(format.element)), largest_(static_cast<std::size_t>(runs.length)),
        more_(largest_.size()), scales_(largest_.size()), inverses_(largest_.size()) {}

  void round(float* numbers, std::int64_t band) {
    const std::int64_t layer = band % runs_.layer_blocks() * runs_.depth;
    band /= runs_.layer_blocks();
    const std::int64_t middle = band % runs_.middle;
    band /= runs_.middle;
    const std::int64_t row = band % runs_.row_blocks() * runs_.height;
    const std::int64_t outer = band / runs_.row_blocks();
    const std::int64_t plane = runs_.layers * runs_.layer;
    first_ = numbers + ((outer * runs_.rows + row) * runs_.middle + middle) * plane +
             layer * runs_.layer;
    height_ = std::min(runs_.height, runs_.rows - row);
    depth_ = std::min(runs_.depth, runs_.layers - layer);
    find_largest();
    find_scales();
    for (std::int64_t i = 0; i < height_ * depth_; ++i) {
      float* at = first_ + i / depth_ * runs_.row + i % depth_ * runs_.layer;
      kernels_.scaled_round(at, at, runs_.length, inverses_.data(), scales_.data(), grid_);
    }
  }

private:
  void find_largest() {
    if (depth_ == 1) {
      kernels_.largest(first_, runs_.row, height_, runs_.length, largest_.data());
      return;
    }
    kernels_.largest(first_, runs_.layer, depth_, runs_.length, largest_.data());
    for (std::int64_t i = 1; i < height_; ++i) {
      kernels_.largest(first_ + i * runs_.row, runs_.layer, depth_, runs_.length, more_.data());
      for (std::size_t j = 0; j < largest_.size(); ++j)
        largest_[j] = std::max(largest_[j], more_[j]);
    }
  }
  void find_scales() {
    const auto width = static_cast<std::size_t>(runs_.width);
    for (std::size_t column = 0; column < largest_.size(); column += width) {
      const std::size_t end = std::min(largest_.size(), column + width);
      std::uint32_t bits = 0;
      for (std::size_t i = column; i < end; ++i)
        bits = std::max(bits, largest_[i]);
      const double scale = scale_of_bits(format_, top_, bits);
      for (std::size_t i = column; i < end; ++i) {
        scales_[i] = static_cast<float>(scale);
        inverses_[i] = static_cast<float>(1 / scale);
      }
    }
  }

  const BlockRuns& runs_;
  const TensorFormat& format_;
  const lanes::Grid<float>& grid_;
  const lanes::Kernels& kernels_;
  int top_;
  std::vector<std::uint32_t> largest_;
  std::vector<std::uint32_t> more_;
  std::vector<float> scales_;
  std::vector<float> inverses_;
  float* first_ = nullptr; ///< start of the current band
  std::int64_t height_ = 0;
  std::int64_t depth_ = 0;
};

bool round_blocks(std::span<const std::int64_t> shape, std::span<float> numbers,
                  const TensorFormat& format, const Rounding& rounding, int jobs,
                  const lanes::Kernels& kernels) {
  const BlockScaling& blocks = *format.blocks;
  if (!is_simple(rounding) || blocks.scale || blocks.of_tensor || shape.empty() ||
      !has_vector_grid(format.element))
    return false;
  const auto runs = runs_of(shape, blocks);
  if (!runs)
    return false;
  Rounding inside = rounding;
  inside.saturate = true;
  inside.symmetric = true;
  const lanes::Grid<float> grid = grid_of<float>(format.element, inside);
  const bool in_rows = runs->height == 1 && runs->depth == 1;
  const std::int64_t length =
      in_rows ? vector_block(runs->length, runs->width, blocks.mode) : std::int64_t{0};
  if (length > 0) {
    round_vector_blocks(numbers, format.element, length, jobs, kernels);
    return true;
  }
  const auto bands = static_cast<std::size_t>(runs->bands());
  parallel_runs(bands, std::max<std::size_t>(1, bands * kRun / numbers.size()), jobs,
                [&](std::size_t first, std::size_t count) {
                  BandRounder rounder(*runs, format, grid, kernels);
                  for (std::size_t band = first; band < first + count; ++band)
                    rounder.round(numbers.data(), static_cast<std::int64_t>(band));
                });
  return true;
}

} // namespace

void round_tensor(std::span<const std::int64_t> shape, std::span<float> numbers,
                  const TensorFormat& format, const Rounding& rounding,
                  const RoundTensorOptions& options) {
  internal_check(checked_product(shape) == static_cast<std::int64_t>(numbers.size()) &&
                     fits_single(format.element),
                 "a tensor has one number for each element, in single precision");
  if (numbers.empty())
    return;
  const lanes::Kernels& kernels = kernels_of(options.instructions);
  if (format.blocks ? round_blocks(shape, numbers, format, rounding, options.jobs, kernels)
                    : round_elements(numbers, format.element, rounding, options.jobs, kernels))
    return;
  const std::vector<double> plain(numbers.begin(), numbers.end());
  const QuantisedTensor rounded =
      quantise(shape, plain, format, {.rounding = rounding, .stream = options.stream});
  std::transform(rounded.values.begin(), rounded.values.end(), numbers.begin(),
                 [](double x) { return static_cast<float>(x); });
}

} // namespace monet

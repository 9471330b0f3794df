// Whole tensors in single precision, by vectors.
#include "numerics/shared/mac_engine.hpp"

#include "monet/base/checked.hpp"
#include "monet/base/errors.hpp"
#include "monet/base/parallel.hpp"
#include "monet/base/units.hpp"
#include "monet/numerics/blocks.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

namespace monet {

namespace {

constexpr std::size_t kRun = 1 << 15; ///< numbers of a task
constexpr std::int64_t kVectorBlock = 32;

template <class F>
void for_each_run(std::size_t count, std::size_t length, int jobs, F f) {
  const std::size_t runs = (count + length - 1) / length;
  parallel_for(runs, jobs, [&](std::size_t run) {
    const std::size_t first = run * length;
    f(first, std::min(length, count - first));
  });
}

bool is_simple(const Rounding& rounding) {
  return rounding.mode == RoundTo::even && !rounding.flush_subnormals;
}

/// Grids as the loops round to by addition.
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
    for_each_run(numbers.size(), kRun, jobs, [&](std::size_t first, std::size_t count) {
      float* at = numbers.data() + first;
      kernels.round_mantissa(at, at, static_cast<std::ptrdiff_t>(count), format.mantissa_bits);
    });
    return true;
  }
  if (!has_vector_grid(format))
    return false;
  const lanes::Grid<float> grid = grid_of<float>(format, rounding);
  for_each_run(numbers.size(), kRun, jobs, [&](std::size_t first, std::size_t count) {
    float* at = numbers.data() + first;
    kernels.round(at, at, static_cast<std::ptrdiff_t>(count), grid);
  });
  return true;
}

/// Rows of blocks of 32 whose scale is the exponent of the largest.
void round_vector_blocks(std::span<float> numbers, const NumberFormat& element, int jobs,
                         const lanes::Kernels& kernels) {
  const lanes::BlockRun all = block_run(element);
  for_each_run(numbers.size(), kRun, jobs, [&](std::size_t first, std::size_t count) {
    lanes::BlockRun run = all;
    run.in = numbers.data() + first;
    run.out = numbers.data() + first;
    run.blocks = static_cast<std::ptrdiff_t>(count) / kVectorBlock;
    kernels.blocks(run);
  });
}

/// A matrix of blocks along the last two axes.
struct BlockRows {
  std::int64_t rows = 1;
  std::int64_t columns = 1;
  std::int64_t height = 1; ///< of a block
  std::int64_t width = 1;
};

/// power_scale() of the bits of a magnitude, most of the time without a logarithm.
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

/// One row of blocks: the largest of every column first, so that all loops run along rows.
void round_band(float* first, std::int64_t height, const BlockRows& matrix,
                const TensorFormat& format, const lanes::Grid<float>& grid,
                const lanes::Kernels& kernels) {
  const auto columns = static_cast<std::size_t>(matrix.columns);
  const auto width = static_cast<std::size_t>(matrix.width);
  std::vector<std::uint32_t> largest(columns);
  std::vector<float> scales(columns);
  std::vector<float> inverses(columns);
  kernels.largest(first, matrix.columns, height, matrix.columns, largest.data());
  const int top = largest_exponent(format.element);
  for (std::size_t column = 0; column < columns; column += width) {
    const std::size_t end = std::min(columns, column + width);
    std::uint32_t bits = 0;
    for (std::size_t i = column; i < end; ++i)
      bits = std::max(bits, largest[i]);
    const double scale = scale_of_bits(format, top, bits);
    std::fill(scales.begin() + static_cast<std::ptrdiff_t>(column),
              scales.begin() + static_cast<std::ptrdiff_t>(end), static_cast<float>(scale));
    std::fill(inverses.begin() + static_cast<std::ptrdiff_t>(column),
              inverses.begin() + static_cast<std::ptrdiff_t>(end), static_cast<float>(1 / scale));
  }
  for (std::int64_t row = 0; row < height; ++row) {
    float* at = first + row * matrix.columns;
    kernels.scaled_round(at, at, matrix.columns, inverses.data(), scales.data(), grid);
  }
}

bool is_axis(int axis, int from_last, std::size_t rank) {
  return axis == -from_last || axis == static_cast<int>(rank) - from_last;
}

bool round_blocks(std::span<const std::int64_t> shape, std::span<float> numbers,
                  const TensorFormat& format, const Rounding& rounding, int jobs,
                  const lanes::Kernels& kernels) {
  const BlockScaling& blocks = *format.blocks;
  const std::size_t rank = shape.size();
  if (!is_simple(rounding) || blocks.scale || blocks.of_tensor || rank == 0 ||
      !has_vector_grid(format.element) || !is_axis(blocks.column_axis, 1, rank) ||
      (blocks.rows > 1 && (rank < 2 || !is_axis(blocks.row_axis, 2, rank))))
    return false;
  Rounding inside = rounding;
  inside.saturate = true;
  inside.symmetric = true;
  const lanes::Grid<float> grid = grid_of<float>(format.element, inside);
  if (blocks.rows == 1 && blocks.columns == kVectorBlock && shape.back() % kVectorBlock == 0 &&
      blocks.mode == ScaleMode::floor) {
    round_vector_blocks(numbers, format.element, jobs, kernels);
    return true;
  }
  BlockRows matrix{1, shape.back(), blocks.rows, blocks.columns};
  matrix.rows = rank < 2 ? 1 : shape[rank - 2];
  const std::int64_t bands = ceil_div(matrix.rows, matrix.height);
  const std::int64_t matrices =
      static_cast<std::int64_t>(numbers.size()) / (matrix.rows * matrix.columns);
  parallel_for(static_cast<std::size_t>(bands * matrices), jobs, [&](std::size_t band) {
    const auto number = static_cast<std::int64_t>(band);
    const std::int64_t row = number % bands * matrix.height;
    float* first = numbers.data() + (number / bands * matrix.rows + row) * matrix.columns;
    round_band(first, std::min(matrix.height, matrix.rows - row), matrix, format, grid, kernels);
  });
  return true;
}

} // namespace

void round_tensor(std::span<const std::int64_t> shape, std::span<float> numbers,
                  const TensorFormat& format, const Rounding& rounding, std::uint64_t stream,
                  int jobs, Instructions instructions) {
  internal_check(checked_product(shape) == static_cast<std::int64_t>(numbers.size()) &&
                     fits_single(format.element),
                 "a tensor has as many numbers as elements, in single precision");
  if (numbers.empty())
    return;
  const lanes::Kernels& kernels = kernels_of(instructions);
  if (format.blocks ? round_blocks(shape, numbers, format, rounding, jobs, kernels)
                    : round_elements(numbers, format.element, rounding, jobs, kernels))
    return;
  const std::vector<double> plain(numbers.begin(), numbers.end());
  const QuantisedTensor rounded = quantise(shape, plain, format, rounding, false, stream);
  std::transform(rounded.values.begin(), rounded.values.end(), numbers.begin(),
                 [](double x) { return static_cast<float>(x); });
}

} // namespace monet

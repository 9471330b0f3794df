// Matrix products by emulated units: packed for the inner loops, or one number at a time if no loop
// supports the unit's arithmetic. The formats command calls it.
#include "base/shared/checked.hpp"
#include "base/shared/parallel.hpp"
#include "numerics/packed_operands.hpp"
#include "numerics/shared/exact_sum.hpp"

#include "monet/base/errors.hpp"
#include "monet/base/stop.hpp"
#include "monet/base/units.hpp"
#include "monet/numerics/mac.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <memory>
#include <type_traits>
#include <utility>

namespace monet {

namespace {

constexpr std::int64_t kRowsOfTask = 16;

std::size_t at(std::int64_t i) {
  return static_cast<std::size_t>(i);
}

/// Converts numbers to another precision; returns them unchanged if it is the same.
template <class Real, class From>
std::unique_ptr<Real[]> in_precision(std::unique_ptr<From[]>& numbers, std::int64_t count,
                                     int jobs) {
  if constexpr (std::is_same_v<Real, From>) {
    return std::move(numbers);
  } else {
    constexpr std::size_t kRun = 1 << 14;
    auto result = std::make_unique_for_overwrite<Real[]>(at(count));
    parallel_runs(at(count), kRun, jobs, [&](std::size_t first, std::size_t length) {
      std::transform(numbers.get() + first, numbers.get() + first + length, result.get() + first,
                     [](From x) { return static_cast<Real>(x); });
    });
    return result;
  }
}

template <class Real, class From>
class PackedGemm {
public:
  PackedGemm(PackedOperands<From>& operands, const Mac& mac, const MacEngine& engine, int jobs)
      : shape_(operands.shape), chunk_(operands.chunk), mac_(mac), engine_(engine), jobs_(jobs),
        a_(in_precision<Real>(operands.a, shape_.m * shape_.k, jobs)),
        b_(in_precision<Real>(operands.b, shape_.k * shape_.n, jobs)),
        a_scales_(operands.a_scales.begin(), operands.a_scales.end()),
        b_scales_(operands.b_scales.begin(), operands.b_scales.end()) {}

  std::vector<double> run() {
    const std::int64_t m = shape_.m;
    std::vector<double> c(at(m * shape_.n));
    parallel_for(at(ceil_div(m, kRowsOfTask)), jobs_, [&](std::size_t task) {
      const auto row = static_cast<std::int64_t>(task) * kRowsOfTask;
      run_rows(row, std::min(kRowsOfTask, m - row), c.data());
    });
    return c;
  }

private:
  void run_rows(std::int64_t row, std::int64_t rows, double* c) const {
    const auto [m, n, k] = shape_;
    std::vector<std::uint32_t> low;
    std::vector<std::uint32_t> high;
    if (engine_.is_random()) {
      low.resize(at(rows * n));
      high.resize(at(rows * n));
      fill_keys(mac_.rounding.seed, static_cast<std::uint64_t>(row * n), low, high);
    }
    std::vector<Real> sums(at(rows * n));
    for (std::int64_t column = 0; column < n; column += kStrip) {
      check_stop();
      lanes::Panel<Real> panel;
      panel.columns = std::min(kStrip, n - column);
      panel.rows = rows;
      panel.steps = k;
      panel.chunk = chunk_;
      panel.out = sums.data() + column;
      panel.out_row = n;
      panel.scalars = a_.get() + row * k;
      panel.scalar_row = k;
      panel.scalar_step = 1;
      panel.vectors = b_.get() + column * k;
      panel.vector_step = panel.columns;
      if (!a_scales_.empty()) {
        panel.scale_row = ceil_div(k, chunk_);
        panel.scalar_scales = a_scales_.data() + row * panel.scale_row;
        panel.vector_scales = b_scales_.data() + column;
        panel.vector_scale_step = n;
      }
      if (!low.empty()) {
        panel.key_row = n;
        panel.low_keys = low.data() + column;
        panel.high_keys = high.data() + column;
      }
      engine_.panel(panel);
    }
    std::copy(sums.begin(), sums.end(), c + row * n);
  }

  GemmShape shape_;
  std::int64_t chunk_;
  const Mac& mac_;
  const MacEngine& engine_;
  int jobs_;
  std::unique_ptr<Real[]> a_;
  std::unique_ptr<Real[]> b_; ///< strips in order, each with k rows
  std::vector<Real> a_scales_;
  std::vector<Real> b_scales_;
};

/// Multiplies one number at a time; supports every unit.
template <class From>
class PlainGemm {
public:
  PlainGemm(const PackedOperands<From>& operands, const Mac& mac)
      : operands_(operands), unit_(mac) {}

  std::vector<double> run(int jobs) const {
    const auto [m, n, k] = operands_.shape;
    std::vector<double> c(at(m * n));
    parallel_for(at(m), jobs, [&](std::size_t i) {
      check_stop();
      const auto row = static_cast<std::int64_t>(i);
      for (std::int64_t j = 0; j < n; ++j)
        c[at(row * n + j)] = output(row, j);
    });
    return c;
  }

private:
  double output(std::int64_t i, std::int64_t j) const {
    const auto [m, n, k] = operands_.shape;
    const auto index = static_cast<std::uint64_t>(i * n + j);
    double c = 0;
    ExactSum all;
    for (std::int64_t k0 = 0; k0 < k; k0 += operands_.chunk) {
      ExactSum chunk;
      ExactSum& sum = unit_.is_exact() ? all : chunk;
      for (std::int64_t q = k0; q < std::min(k, k0 + operands_.chunk); ++q)
        unit_.add_product(sum, static_cast<double>(operands_.a[at(i * k + q)]),
                          static_cast<double>(operands_.b_at(q, j)), index,
                          static_cast<std::uint64_t>(q));
      if (!unit_.is_exact())
        c = unit_.add_chunk(c, chunk, scale_of(i, j, k0 / operands_.chunk), index,
                            static_cast<std::uint64_t>(k0));
    }
    return unit_.is_exact() ? round_to(kSinglePrecision, all.odd()) : c;
  }

  double scale_of(std::int64_t i, std::int64_t j, std::int64_t chunk) const {
    if (operands_.a_scales.empty())
      return 1;
    const auto [m, n, k] = operands_.shape;
    return operands_.a_scales[at(i * ceil_div(k, operands_.chunk) + chunk)] *
           operands_.b_scales[at(chunk * n + j)];
  }

  const PackedOperands<From>& operands_;
  PlainUnit unit_;
};

void set_scales(ProductRange& range, const std::vector<double>& scales) {
  int least = std::numeric_limits<int>::max();
  int largest = std::numeric_limits<int>::min();
  for (const double scale : scales) {
    if (!(scale > 0) || std::isinf(scale)) // zeros or NaN
      continue;
    const int exponent = std::ilogb(scale);
    range.powers_of_two = range.powers_of_two && std::ldexp(1.0, exponent) == scale;
    least = std::min(least, exponent);
    largest = std::max(largest, exponent);
  }
  if (least > largest)
    return;
  range.min_scale += least;
  range.largest_scale += largest;
}

template <class From>
std::vector<double> run_gemm(PackedOperands<From> operands, const Mac& mac,
                             const GemmOptions& options) {
  ProductRange range;
  range.left = operands.left;
  range.right = operands.right;
  range.steps = operands.shape.k;
  range.chunk = operands.chunk;
  set_scales(range, operands.a_scales);
  set_scales(range, operands.b_scales);
  const MacEngine engine(mac, range, options.instructions);
  std::vector<double> c;
  if (engine.is_single())
    c = PackedGemm<float, From>(operands, mac, engine, options.jobs).run();
  else if (engine.is_double())
    c = PackedGemm<double, From>(operands, mac, engine, options.jobs).run();
  else
    return PlainGemm<From>(operands, mac).run(options.jobs);
  if (!mac.sum) {
    for (double& x : c)
      x = round_to(kSinglePrecision, x);
  }
  return c;
}

void check_gemm(const GemmShape& shape, std::span<const double> a, std::span<const double> b,
                const Mac& mac) {
  if (const auto why = why_not_emulated(mac))
    throw InputError({}, *why);
  const auto is = [](std::size_t count, std::int64_t x, std::int64_t y) {
    return static_cast<std::int64_t>(count) == checked_multiply(x, y);
  };
  internal_check(is(a.size(), shape.m, shape.k) && is(b.size(), shape.k, shape.n),
                 "a matrix has one number for each element");
}

/// Expands the scales of whole blocks to the chunks inside them.
std::vector<double> spread_scales(const QuantisedTensor& tensor, std::int64_t rows,
                                  std::int64_t columns, std::int64_t by_row,
                                  std::int64_t by_column) {
  std::vector<double> result;
  for (std::int64_t i = 0; i < rows; ++i) {
    for (std::int64_t j = 0; j < columns; ++j) {
      const std::int64_t block = i / by_row * tensor.scale_shape[1] + j / by_column;
      result.push_back(tensor.scales[at(block)] * tensor.tensor_scale);
    }
  }
  return result;
}

/// Whether the blocks have the usual form, which the vector kernels round.
bool are_usual(const TensorFormat& format, const Mac& mac, std::int64_t k, std::int64_t chunk) {
  const BlockScaling& blocks = *format.blocks;
  return blocks.rows == 1 && blocks.columns == 32 && chunk == 32 && k % 32 == 0 &&
         blocks.mode == ScaleMode::floor && !blocks.scale && !blocks.of_tensor &&
         mac.rounding.mode == RoundTo::even && !mac.rounding.flush_subnormals &&
         format.element.bits() <= 8;
}

/// Packs operands with blocks of any form.
PackedOperands<double> pack_blocks(const GemmShape& shape, std::span<const double> a,
                                   std::span<const double> b, const TensorFormat& format,
                                   const Mac& mac, const GemmOptions& options) {
  const auto [m, n, k] = shape;
  const std::int64_t chunk = mac.lanes;
  TensorFormat left = format;
  left.blocks->row_axis = 0;
  left.blocks->column_axis = 1;
  TensorFormat right = format; // the same blocks, transposed
  right.blocks->row_axis = 1;
  right.blocks->column_axis = 0;
  const std::array<std::int64_t, 2> of_a{m, k};
  const std::array<std::int64_t, 2> of_b{k, n};
  const QuantisedTensor qa = quantise(of_a, a, left, {mac.rounding, false, 0, {}});
  const QuantisedTensor qb = quantise(of_b, b, right, {mac.rounding, false, 1, {}});
  PackedOperands<double> operands = pack_doubles(shape, qa.elements, qb.elements, mac, options);
  const std::int64_t chunks = ceil_div(k, chunk);
  const std::int64_t chunks_of_block = format.blocks->columns / chunk;
  operands.a_scales = spread_scales(qa, m, chunks, format.blocks->rows, chunks_of_block);
  operands.b_scales = spread_scales(qb, chunks, n, chunks_of_block, format.blocks->rows);
  return operands;
}

} // namespace

std::vector<double> emulate_gemm(const GemmShape& shape, std::span<const double> a,
                                 std::span<const double> b, const Mac& mac,
                                 const GemmOptions& options) {
  check_gemm(shape, a, b, mac);
  if (auto singles = pack_singles(shape, a, b, mac, options))
    return run_gemm(std::move(*singles), mac, options);
  return run_gemm(pack_doubles(shape, a, b, mac, options), mac, options);
}

std::vector<double> emulate_block_gemm(const GemmShape& shape, std::span<const double> a,
                                       std::span<const double> b, const TensorFormat& format,
                                       const Mac& mac, const GemmOptions& options) {
  check_gemm(shape, a, b, mac);
  internal_check(format.blocks.has_value() && !mac.operands,
                 "operands of a block product are in blocks, and in nothing else");
  const std::int64_t block = format.blocks->columns;
  if (block % mac.lanes != 0)
    throw InputError(
        {}, fmt::format("{} products at a time do not divide a block of {}", mac.lanes, block));
  const std::int64_t chunk =
      mac.lanes == 1 ? std::min(block, std::max<std::int64_t>(shape.k, 1)) : mac.lanes;
  Mac unit = mac;
  unit.multiplier = Multiplier::exact;
  unit.lanes = static_cast<int>(chunk);
  if (are_usual(format, mac, shape.k, chunk)) {
    if (auto packed = pack_vector_blocks(shape, a, b, format.element, options))
      return run_gemm(std::move(*packed), unit, options);
  }
  return run_gemm(pack_blocks(shape, a, b, format, unit, options), unit, options);
}

} // namespace monet

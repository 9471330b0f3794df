// Products of matrices by emulated units: packed for the inner loops, or number by number where no
// loop holds what the unit computes.
#include "numerics/shared/mac_engine.hpp"

#include "monet/base/checked.hpp"
#include "monet/base/errors.hpp"
#include "monet/base/parallel.hpp"
#include "monet/base/stop.hpp"
#include "monet/base/units.hpp"
#include "monet/numerics/exact_sum.hpp"
#include "monet/numerics/mac.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

namespace monet {

namespace {

constexpr std::int64_t kStrip = 32; ///< columns that are packed together
constexpr std::int64_t kRowsOfTask = 16;

/// Operands as the multiplier reads them, and the scales of chunks where there are any.
struct Operands {
  GemmShape shape;
  std::vector<double> a; ///< m x k
  std::vector<double> b; ///< k x n
  std::int64_t chunk = 1;
  std::vector<double> a_scales; ///< m x chunks; empty: none
  std::vector<double> b_scales; ///< chunks x n
};

std::size_t at(std::int64_t i) {
  return static_cast<std::size_t>(i);
}

template <class Real>
std::vector<Real> converted(const std::vector<double>& numbers) {
  std::vector<Real> result;
  result.reserve(numbers.size());
  for (const double number : numbers)
    result.push_back(static_cast<Real>(number));
  return result;
}

template <class Real>
class PackedGemm {
public:
  PackedGemm(const Operands& operands, const Mac& mac, const MacEngine& engine, int jobs)
      : shape_(operands.shape), chunk_(operands.chunk), mac_(mac), engine_(engine), jobs_(jobs),
        a_(converted<Real>(operands.a)), a_scales_(converted<Real>(operands.a_scales)),
        b_scales_(converted<Real>(operands.b_scales)) {
    const std::vector<Real> b = converted<Real>(operands.b);
    const auto [m, n, k] = shape_;
    b_.resize(b.size());
    for (std::int64_t column = 0; column < n; column += kStrip) {
      const std::int64_t width = std::min(kStrip, n - column);
      Real* to = b_.data() + column * k;
      for (std::int64_t step = 0; step < k; ++step)
        to = std::copy_n(b.data() + step * n + column, width, to);
    }
  }

  std::vector<double> run() {
    const auto [m, n, k] = shape_;
    c_.assign(at(m * n), Real{0});
    const std::int64_t tasks = ceil_div(m, kRowsOfTask);
    parallel_for(at(tasks), jobs_, [&](std::size_t task) {
      const auto row = static_cast<std::int64_t>(task) * kRowsOfTask;
      run_rows(row, std::min(kRowsOfTask, m - row));
    });
    return {c_.begin(), c_.end()};
  }

private:
  void run_rows(std::int64_t row, std::int64_t rows) {
    const auto [m, n, k] = shape_;
    std::vector<std::uint32_t> low;
    std::vector<std::uint32_t> high;
    if (engine_.is_random()) {
      low.resize(at(rows * n));
      high.resize(at(rows * n));
      fill_keys(mac_.rounding.seed, static_cast<std::uint64_t>(row * n), low, high);
    }
    for (std::int64_t column = 0; column < n; column += kStrip) {
      check_stop();
      lanes::Panel<Real> panel;
      panel.columns = std::min(kStrip, n - column);
      panel.rows = rows;
      panel.steps = k;
      panel.chunk = chunk_;
      panel.out = c_.data() + row * n + column;
      panel.out_row = n;
      panel.scalars = a_.data() + row * k;
      panel.scalar_row = k;
      panel.scalar_step = 1;
      panel.vectors = b_.data() + column * k;
      panel.vector_step = panel.columns;
      if (!a_scales_.empty()) {
        panel.scale_row = ceil_div(k, chunk_);
        panel.scalar_scales = a_scales_.data() + row * panel.scale_row;
        panel.vector_scales = b_scales_.data() + column;
        panel.vector_scale_step = n;
      }
      panel.key_row = n;
      panel.low_keys = low.data() + column;
      panel.high_keys = high.data() + column;
      engine_.panel(panel);
    }
  }

  GemmShape shape_;
  std::int64_t chunk_;
  const Mac& mac_;
  const MacEngine& engine_;
  int jobs_;
  std::vector<Real> a_;
  std::vector<Real> b_; ///< strip by strip, each as k rows
  std::vector<Real> a_scales_;
  std::vector<Real> b_scales_;
  std::vector<Real> c_;
};

/// Number by number, whatever the unit needs.
class PlainGemm {
public:
  PlainGemm(const Operands& operands, const Mac& mac) : operands_(operands), unit_(mac) {}

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
        unit_.add_product(sum, operands_.a[at(i * k + q)], operands_.b[at(q * n + j)], index,
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

  const Operands& operands_;
  PlainUnit unit_;
};

void set_scales(ProductRange& range, const std::vector<double>& scales) {
  int least = std::numeric_limits<int>::max();
  int largest = std::numeric_limits<int>::min();
  for (const double scale : scales) {
    if (!(scale > 0) || std::isinf(scale)) // zeros, or NaN
      continue;
    const int exponent = std::ilogb(scale);
    range.powers_of_two = range.powers_of_two && std::ldexp(1.0, exponent) == scale;
    least = std::min(least, exponent);
    largest = std::max(largest, exponent);
  }
  if (least > largest)
    return;
  range.least_scale += least;
  range.largest_scale += largest;
}

std::vector<double> run_gemm(const Operands& operands, const Mac& mac, const GemmOptions& options) {
  ProductRange range;
  range.left = facts_of(operands.a);
  range.right = facts_of(operands.b);
  range.steps = operands.shape.k;
  range.chunk = operands.chunk;
  set_scales(range, operands.a_scales);
  set_scales(range, operands.b_scales);
  const MacEngine engine(mac, range, options.instructions);
  std::vector<double> c;
  if (engine.is_single())
    c = PackedGemm<float>(operands, mac, engine, options.jobs).run();
  else if (engine.is_double())
    c = PackedGemm<double>(operands, mac, engine, options.jobs).run();
  else
    return PlainGemm(operands, mac).run(options.jobs);
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
                 "a matrix has as many numbers as elements");
}

/// Scales of whole blocks as those of chunks inside them.
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

/// Rows of blocks of 32 by vectors: elements and scales, both row by row.
struct BlockedRows {
  std::vector<float> elements;
  std::vector<float> scales;
};
BlockedRows block_rows(std::vector<float> rows, const TensorFormat& format,
                       const lanes::Kernels& kernels) {
  BlockedRows result;
  result.scales.resize(rows.size() / 32);
  lanes::BlockRun run = block_run(format.element);
  run.in = rows.data();
  run.out = rows.data();
  run.scales = result.scales.data();
  run.blocks = static_cast<std::ptrdiff_t>(result.scales.size());
  run.elements = true;
  kernels.blocks(run);
  result.elements = std::move(rows);
  return result;
}

template <class From, class To>
std::vector<To> transposed(std::span<const From> from, std::int64_t rows, std::int64_t columns) {
  std::vector<To> to(from.size());
  for (std::int64_t i = 0; i < rows; ++i) {
    for (std::int64_t j = 0; j < columns; ++j)
      to[at(j * rows + i)] = static_cast<To>(from[at(i * columns + j)]);
  }
  return to;
}

/// Operands in the most usual blocks, if these are.
bool quantise_fast(Operands& operands, std::span<const double> a, std::span<const double> b,
                   const TensorFormat& format, const Mac& mac, const GemmOptions& options) {
  const BlockScaling& blocks = *format.blocks;
  const auto [m, n, k] = operands.shape;
  const bool usual = blocks.rows == 1 && blocks.columns == 32 && operands.chunk == 32 &&
                     k % 32 == 0 && blocks.mode == ScaleMode::floor && !blocks.scale &&
                     !blocks.of_tensor && mac.rounding.mode == RoundTo::even &&
                     !mac.rounding.flush_subnormals && format.element.bits() <= 8;
  if (!usual)
    return false;
  const lanes::Kernels& kernels = kernels_of(options.instructions);
  std::vector<float> rows_of_a(a.begin(), a.end());
  BlockedRows left = block_rows(std::move(rows_of_a), format, kernels);
  BlockedRows right = block_rows(transposed<double, float>(b, k, n), format, kernels);
  operands.a.assign(left.elements.begin(), left.elements.end());
  operands.a_scales.assign(left.scales.begin(), left.scales.end());
  operands.b = transposed<float, double>(std::span<const float>(right.elements), n, k);
  operands.b_scales = transposed<float, double>(std::span<const float>(right.scales), n, k / 32);
  return true;
}

} // namespace

std::vector<double> emulate_gemm(const GemmShape& shape, std::span<const double> a,
                                 std::span<const double> b, const Mac& mac,
                                 const GemmOptions& options) {
  check_gemm(shape, a, b, mac);
  Operands operands;
  operands.shape = shape;
  operands.chunk = mac.lanes;
  const auto decode_all = [&](std::span<const double> from, std::vector<double>& to) {
    to.reserve(from.size());
    for (const double x : from)
      to.push_back(decoded_operand(mac, x));
  };
  decode_all(a, operands.a);
  decode_all(b, operands.b);
  return run_gemm(operands, mac, options);
}

std::vector<double> emulate_block_gemm(const GemmShape& shape, std::span<const double> a,
                                       std::span<const double> b, const TensorFormat& format,
                                       const Mac& mac, const GemmOptions& options) {
  check_gemm(shape, a, b, mac);
  internal_check(format.blocks.has_value() && !mac.operands,
                 "operands of a block product are in blocks, and in nothing else");
  const auto [m, n, k] = shape;
  TensorFormat left = format;
  left.blocks->row_axis = 0;
  left.blocks->column_axis = 1;
  TensorFormat right = format; // the same blocks, lying the other way
  right.blocks->row_axis = 1;
  right.blocks->column_axis = 0;
  const std::int64_t block = format.blocks->columns;
  if (block % mac.lanes != 0)
    throw InputError(
        {}, fmt::format("{} products at a time do not divide a block of {}", mac.lanes, block));
  const std::int64_t chunk =
      mac.lanes == 1 ? std::min(block, std::max<std::int64_t>(k, 1)) : mac.lanes;
  Operands operands;
  operands.shape = shape;
  operands.chunk = chunk;
  if (!quantise_fast(operands, a, b, format, mac, options)) {
    const std::array<std::int64_t, 2> of_a{m, k};
    const std::array<std::int64_t, 2> of_b{k, n};
    QuantisedTensor qa = quantise(of_a, a, left, mac.rounding, false, 0);
    QuantisedTensor qb = quantise(of_b, b, right, mac.rounding, false, 1);
    const std::int64_t chunks = ceil_div(k, chunk);
    const std::int64_t chunks_of_block = block / chunk;
    operands.a_scales = spread_scales(qa, m, chunks, format.blocks->rows, chunks_of_block);
    operands.b_scales = spread_scales(qb, chunks, n, chunks_of_block, format.blocks->rows);
    operands.a = std::move(qa.elements);
    operands.b = std::move(qb.elements);
  }
  Mac unit = mac;
  unit.multiplier = Multiplier::exact;
  return run_gemm(operands, unit, options);
}

} // namespace monet

// Deviation of numbers and products in a reduced format from those in double precision; the formats
// command reports it.
#include "base/shared/parallel.hpp"
#include "numerics/shared/mac_engine.hpp"

#include "monet/base/errors.hpp"
#include "monet/base/stop.hpp"
#include "monet/numerics/mac.hpp"

#include <algorithm>
#include <cmath>

namespace monet {

namespace {

/// Root mean square of numbers with at most this magnitude; squares neither overflow nor underflow.
class RootMeanSquare {
public:
  explicit RootMeanSquare(double largest) : largest_(largest) {}
  void add(double x) {
    ++count_;
    if (largest_ > 0)
      sum_ += x / largest_ * (x / largest_);
  }
  double value() const {
    return count_ == 0 ? 0 : largest_ * std::sqrt(sum_ / static_cast<double>(count_));
  }

private:
  double largest_;
  double sum_ = 0;
  std::int64_t count_ = 0;
};

/// Row of a product: the sums, and the rounding error of each.
struct PreciseRow {
  std::vector<double> sum;
  std::vector<double> rest;

  explicit PreciseRow(std::size_t columns) : sum(columns, 0), rest(columns, 0) {}

  /// Adds a times a row of B with Knuth's TwoSum, and the product's rounding error unless products
  /// are exact.
  void add(double a, const double* b, bool exact_products) {
    double* const s = sum.data();
    double* const r = rest.data();
    const std::size_t columns = sum.size();
    for (std::size_t j = 0; j < columns; ++j) {
      const double p = a * b[j];
      const double next = s[j] + p;
      const double back = next - s[j];
      r[j] += (s[j] - (next - back)) + (p - back);
      s[j] = next;
    }
    for (std::size_t j = 0; j < columns && !exact_products; ++j)
      r[j] += std::fma(a, b[j], -(a * b[j]));
  }
  double value(std::size_t j) const {
    const double both = sum[j] + rest[j];
    return std::isnan(both) ? sum[j] : both; // infinity has no rounding error
  }
};

} // namespace

Deviation deviation(std::span<const double> before, std::span<const double> after) {
  internal_check(before.size() == after.size(), "the number of numbers changed");
  Deviation result;
  result.numbers = static_cast<std::int64_t>(before.size());
  double largest = 0;
  for (std::size_t i = 0; i < before.size(); ++i) {
    const double x = before[i];
    const double q = after[i];
    result.nan += std::isnan(q) ? 1 : 0;
    result.infinite += std::isinf(q) ? 1 : 0;
    if (!std::isfinite(x))
      continue;
    result.inexact += q != x ? 1 : 0;
    result.flushed += q == 0 && x != 0 ? 1 : 0;
    if (!std::isfinite(q))
      continue;
    const double error = std::abs(x - q);
    largest = std::max(largest, std::abs(x));
    result.largest_absolute = std::max(result.largest_absolute, error);
    if (x != 0)
      result.largest_relative = std::max(result.largest_relative, error / std::abs(x));
  }
  RootMeanSquare signal(largest);
  RootMeanSquare noise(result.largest_absolute);
  for (std::size_t i = 0; i < before.size(); ++i) {
    if (!std::isfinite(before[i]) || !std::isfinite(after[i]))
      continue;
    signal.add(before[i]);
    noise.add(before[i] - after[i]);
  }
  result.rms = noise.value();
  constexpr double kDecibels = 20; // decibels per decade of amplitude
  if (signal.value() > 0 && result.rms > 0)
    result.sqnr_db = kDecibels * (std::log10(signal.value()) - std::log10(result.rms));
  return result;
}

BeyondRange beyond_range(std::span<const double> before, const QuantisedTensor& after,
                         const TensorFormat& format, bool symmetric) {
  internal_check(before.size() == after.values.size(), "the number of numbers changed");
  const double most = largest_number(format.element);
  const double least =
      symmetric && !(lowest_number(format.element) > -most) ? -most : lowest_number(format.element);
  BeyondRange result;
  for (std::size_t i = 0; i < before.size(); ++i) {
    const double x = before[i];
    const double q = after.values[i];
    const double element = after.elements[i];
    if (std::isnan(x) || std::isnan(element)) {
      result.overflowed += !std::isnan(x) && !format.blocks ? 1 : 0; // blocks are NaN as a whole
    } else if (std::isinf(q)) {
      result.overflowed += x != q ? 1 : 0;
    } else if ((element == most && x > q) || (element == least && x < q)) {
      ++result.saturated;
    }
  }
  return result;
}

std::vector<double> precise_product(const GemmShape& shape, std::span<const double> a,
                                    std::span<const double> b, int jobs) {
  const auto [m, n, k] = shape;
  const auto columns = static_cast<std::size_t>(n);
  const auto steps = static_cast<std::size_t>(k);
  constexpr int kDoubleBits = 53;
  const bool exact = facts_of(a).significand_bits + facts_of(b).significand_bits <= kDoubleBits;
  std::vector<double> c(static_cast<std::size_t>(m) * columns);
  parallel_for(static_cast<std::size_t>(m), jobs, [&](std::size_t i) {
    PreciseRow row(columns);
    for (std::size_t q = 0; q < steps; ++q) {
      check_stop();
      row.add(a[i * steps + q], b.data() + q * columns, exact);
    }
    for (std::size_t j = 0; j < columns; ++j)
      c[i * columns + j] = row.value(j);
  });
  return c;
}

} // namespace monet

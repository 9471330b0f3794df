// Errors of low precision: deviation of rounded numbers and products from those in double
// precision.
#pragma once

#include "monet/numerics/blocks.hpp"
#include "monet/numerics/mac.hpp"

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace monet {

/// Deviation of numbers after rounding. Errors count only numbers that are finite before and after.
struct Deviation {
  /// Count of all numbers.
  std::int64_t numbers = 0;
  std::int64_t inexact = 0;    ///< finite numbers that changed, also to infinity or NaN
  std::int64_t flushed = 0;    ///< numbers that became 0
  std::int64_t nan = 0;        ///< count of NaN results
  std::int64_t infinite = 0;   ///< count of infinite results
  double largest_absolute = 0; ///< maximum absolute error
  double largest_relative = 0; ///< maximum relative error, as a fraction of the number before
  double rms = 0;              ///< root mean square of the error
  /// Ratio of signal to quantisation noise in dB; nullopt without noise or signal.
  std::optional<double> sqnr_db;
};
/// Compares numbers before and after rounding; both spans must have the same size.
Deviation deviation(std::span<const double> before, std::span<const double> after);

/// Counts of numbers beyond the largest one of a format, infinities included.
struct BeyondRange {
  std::int64_t saturated = 0;  ///< replaced by the largest number
  std::int64_t overflowed = 0; ///< replaced by infinity or, in formats without infinity, by NaN
};
/// Counts the numbers of `before` that are beyond the range of the format; `after` is quantise()'s
/// result. `symmetric`: the most negative code is not used.
BeyondRange beyond_range(std::span<const double> before, const QuantisedTensor& after,
                         const TensorFormat& format, bool symmetric);

/// Product A B with sums in twice double precision, rounded to double at the end. Checks for stop
/// requests with check_stop().
std::vector<double> precise_product(const GemmShape& shape, std::span<const double> a,
                                    std::span<const double> b, int jobs = 1);

} // namespace monet

// How far results in low precision are from what they stand for.
#pragma once

#include "monet/numerics/blocks.hpp"
#include "monet/numerics/mac.hpp"

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace monet {

/// Errors are those of numbers that are finite before and after.
struct Deviation {
  std::int64_t numbers = 0;
  std::int64_t inexact = 0;    ///< finite numbers that became others, or none
  std::int64_t flushed = 0;    ///< became 0
  std::int64_t nan = 0;        ///< of the results
  std::int64_t infinite = 0;   ///< of the results
  double largest_absolute = 0; ///< error
  double largest_relative = 0; ///< error, as a part of the number before
  double rms = 0;              ///< root of the mean square of the error
  /// Signal over quantisation noise; nothing without noise or signal.
  std::optional<double> sqnr_db;
};
Deviation deviation(std::span<const double> before, std::span<const double> after);

/// Numbers beyond the largest one of a format, infinities among them.
struct BeyondRange {
  std::int64_t saturated = 0;  ///< became the largest
  std::int64_t overflowed = 0; ///< became infinity or, where the format has none, NaN
};
/// Of numbers that quantise() made `after` of; `symmetric`: without the most negative code.
BeyondRange beyond_range(std::span<const double> before, const QuantisedTensor& after,
                         const TensorFormat& format, bool symmetric);

/// A B with sums in twice double precision, then rounded to double. Heeds check_stop().
std::vector<double> precise_product(const GemmShape& shape, std::span<const double> a,
                                    std::span<const double> b, int jobs = 1);

} // namespace monet

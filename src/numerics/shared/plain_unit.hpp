// A unit that computes one number at a time: reference for the inner loops, and fallback if no loop
// supports the unit.
#pragma once

#include "numerics/shared/exact_sum.hpp"
#include "numerics/shared/panel.hpp"

#include "monet/numerics/mac.hpp"

#include <cstdint>
#include <optional>

namespace monet {

/// Rounding to a format.
struct RoundingStep {
  NumberFormat format;
  Rounding rounding;
};
/// Rounding steps of a unit, in order.
struct UnitSteps {
  std::optional<RoundingStep> product;
  std::optional<RoundingStep> convert;
  std::optional<RoundingStep> sum; ///< nullopt if exact
};
UnitSteps steps_of(const Mac& mac);
/// Whether the unit's multiplier lacks NaN, so that infinity times 0 is 0.
bool zero_wins(const Mac& mac);

/// Sum in double, with its last bit odd if inexact.
double odd_sum(double a, double b);

/// Computes products and sums of operands as the multiplier reads them.
class PlainUnit {
public:
  explicit PlainUnit(const Mac& mac) : steps_(steps_of(mac)), zero_wins_(zero_wins(mac)) {}

  bool is_exact() const { return !steps_.sum; }

  /// Equivalent to mac_product() and mac_sum().
  double product(double a, double b, std::uint64_t output, std::uint64_t k) const;
  double sum(double c, double p, std::uint64_t output, std::uint64_t k) const;

  /// Adds the k-th product to a chunk's exact sum; products and sums may have any number of bits.
  void add_product(ExactSum& chunk, double a, double b, std::uint64_t output,
                   std::uint64_t k) const;
  /// Adds a chunk, times its scale, to the sum c; `k` is the index of the chunk's first product.
  double add_chunk(double c, ExactSum& chunk, double scale, std::uint64_t output,
                   std::uint64_t k) const;

private:
  static double rounded(const std::optional<RoundingStep>& step, double x, std::uint64_t output,
                        std::uint64_t k, lanes::Draw draw);

  UnitSteps steps_;
  bool zero_wins_;
};

} // namespace monet

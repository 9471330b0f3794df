// A unit number by number: what its inner loops are compared with, and what computes where no loop
// holds what the unit does.
#pragma once

#include "numerics/shared/panel.hpp"

#include "monet/numerics/exact_sum.hpp"
#include "monet/numerics/mac.hpp"

#include <cstdint>
#include <optional>

namespace monet {

/// A rounding to a format.
struct RoundingStep {
  NumberFormat format;
  Rounding rounding;
};
/// What a unit does, one after the other.
struct UnitSteps {
  std::optional<RoundingStep> product;
  std::optional<RoundingStep> convert;
  std::optional<RoundingStep> sum; ///< none: exact
};
UnitSteps steps_of(const Mac& mac);
/// Its multiplier has no NaN: infinity times 0 is 0.
bool zero_wins(const Mac& mac);

/// The sum in double, its last bit odd where it is not exact.
double odd_sum(double a, double b);

/// Takes operands as the multiplier reads them.
class PlainUnit {
public:
  explicit PlainUnit(const Mac& mac) : steps_(steps_of(mac)), zero_wins_(zero_wins(mac)) {}

  bool is_exact() const { return !steps_.sum; }

  /// mac_product() and mac_sum().
  double product(double a, double b, std::uint64_t output, std::uint64_t k) const;
  double sum(double c, double p, std::uint64_t output, std::uint64_t k) const;

  /// Of products and sums of any number of bits: the k-th product goes to a chunk, ...
  void add_product(ExactSum& chunk, double a, double b, std::uint64_t output,
                   std::uint64_t k) const;
  /// ... and the chunk whose first product is the k-th, times its scale, to the sum.
  double add_chunk(double c, ExactSum& chunk, double scale, std::uint64_t output,
                   std::uint64_t k) const;

private:
  static double rounded(const std::optional<RoundingStep>& step, double x, std::uint64_t output,
                        std::uint64_t k, lanes::Draw draw);

  UnitSteps steps_;
  bool zero_wins_;
};

} // namespace monet

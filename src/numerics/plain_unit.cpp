// A unit that computes one number at a time: reference for the inner loops, and fallback of
// gemm.cpp.
#include "numerics/shared/plain_unit.hpp"

#include <bit>
#include <cmath>

namespace monet {

UnitSteps steps_of(const Mac& mac) {
  UnitSteps steps;
  const NumberFormat& format = mac.product;
  Rounding nearest = mac.rounding;
  nearest.mode = RoundTo::even;
  const auto wide = [&](TopCodes top) {
    return floating_format(format.exponent_bits + 1, 2 * format.mantissa_bits + 1, top);
  };
  Rounding flushed = nearest;
  flushed.flush_subnormals = true;
  switch (mac.multiplier) {
  case Multiplier::rounded:
    steps.product = RoundingStep{format, mac.rounding};
    break;
  case Multiplier::exact:
    break;
  case Multiplier::cfg1:
    steps.product = RoundingStep{format, nearest};
    break;
  case Multiplier::cfg2:
    steps.product = RoundingStep{format, flushed};
    break;
  case Multiplier::cfg3:
    steps.product = RoundingStep{wide(TopCodes::ieee), flushed};
    break;
  case Multiplier::cfg4:
  case Multiplier::cfg5:
  case Multiplier::cfg6:
    steps.product = RoundingStep{wide(TopCodes::infinity), flushed};
    break;
  }
  if (mac.fma)
    steps.product.reset();
  if (mac.sum) {
    steps.sum = RoundingStep{*mac.sum, mac.rounding};
    const bool same = steps.product && steps.product->format == *mac.sum;
    if (!mac.sum->floating && !mac.fma && !same)
      steps.convert = steps.sum;
  }
  return steps;
}

bool zero_wins(const Mac& mac) {
  return mac.multiplier >= Multiplier::cfg4;
}

double odd_sum(double a, double b) {
  const double sum = a + b;
  const double of_b = sum - a;
  const double rest = (a - (sum - of_b)) + (b - of_b);
  if (!(rest < 0 || rest > 0))
    return sum;
  auto bits = std::bit_cast<std::uint64_t>(sum);
  if ((rest < 0) != std::signbit(sum))
    --bits;
  return std::bit_cast<double>(bits | 1);
}

double PlainUnit::rounded(const std::optional<RoundingStep>& step, double x, std::uint64_t output,
                          std::uint64_t k, lanes::Draw draw) {
  if (!step)
    return x;
  RoundingAid aid;
  if (step->rounding.mode == RoundTo::stochastic)
    aid.random = rounding_bits(step->rounding.seed, output,
                               lanes::kDraws * k + static_cast<std::uint64_t>(draw));
  return round_to(step->format, x, step->rounding, aid);
}

double PlainUnit::product(double a, double b, std::uint64_t output, std::uint64_t k) const {
  double p = a * b;
  if (zero_wins_ && std::isnan(p))
    p = 0;
  p = rounded(steps_.product, p, output, k, lanes::Draw::product);
  return rounded(steps_.convert, p, output, k, lanes::Draw::convert);
}

double PlainUnit::sum(double c, double p, std::uint64_t output, std::uint64_t k) const {
  if (steps_.sum->format == kDoublePrecision)
    return c + p;
  return rounded(steps_.sum, odd_sum(c, p), output, k, lanes::Draw::sum);
}

void PlainUnit::add_product(ExactSum& chunk, double a, double b, std::uint64_t output,
                            std::uint64_t k) const {
  const double p = a * b;
  if (zero_wins_ && std::isnan(p))
    return;
  if (steps_.product)
    chunk.add(rounded(steps_.product, p, output, k, lanes::Draw::product));
  else
    chunk.add_product(a, b);
}

double PlainUnit::add_chunk(double c, ExactSum& chunk, double scale, std::uint64_t output,
                            std::uint64_t k) const {
  if (steps_.convert || scale != 1) {
    const double p = chunk.odd() * scale;
    return sum(c, rounded(steps_.convert, p, output, k, lanes::Draw::convert), output, k);
  }
  if (steps_.sum->format == kDoublePrecision)
    return c + chunk.rounded();
  chunk.add(c);
  return rounded(steps_.sum, chunk.odd(), output, k, lanes::Draw::sum);
}

} // namespace monet

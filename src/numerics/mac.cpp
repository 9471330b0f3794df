// Multiply-accumulate units: how a unit reads operands, and rounds products and sums. Reference for
// the vector engine.
#include "monet/numerics/mac.hpp"

#include "base/shared/names.hpp"
#include "numerics/shared/mac_engine.hpp"

#include <fmt/core.h>

#include <array>
#include <bit>
#include <cmath>
#include <limits>

namespace monet {

namespace {

using NamedMultiplier = Named<Multiplier>;
constexpr std::array kMultipliers{
    NamedMultiplier{"rounded", Multiplier::rounded}, NamedMultiplier{"exact", Multiplier::exact},
    NamedMultiplier{"cfg1", Multiplier::cfg1},       NamedMultiplier{"cfg2", Multiplier::cfg2},
    NamedMultiplier{"cfg3", Multiplier::cfg3},       NamedMultiplier{"cfg4", Multiplier::cfg4},
    NamedMultiplier{"cfg5", Multiplier::cfg5},       NamedMultiplier{"cfg6", Multiplier::cfg6}};

constexpr int kHybridMantissa = 16;
constexpr int kHybridLanes = 4;

bool is_variant(Multiplier multiplier) {
  return multiplier != Multiplier::rounded && multiplier != Multiplier::exact;
}

/// Whether x is a normal, finite number of an IEEE format; every reading variant yields it
/// unchanged.
bool is_normal_number(const NumberFormat& format, double x) {
  constexpr int kMantissa = 52;
  constexpr int kBias = 1023;
  const auto bits = std::bit_cast<std::uint64_t>(x);
  const auto exponent = static_cast<int>(bits >> kMantissa & 0x7FF) - kBias;
  const std::uint64_t behind = (std::uint64_t{1} << (kMantissa - format.mantissa_bits)) - 1;
  return (bits & behind) == 0 && exponent >= 1 - format.bias() && exponent <= format.bias();
}

/// Code of an operand's magnitude in the format; its top exponent may encode numbers.
std::uint64_t magnitude_code(const NumberFormat& format, double x, bool top_is_numbers) {
  const double magnitude = std::abs(x);
  NumberFormat wide = format;
  if (top_is_numbers) {
    wide.top = TopCodes::infinity;
    if (std::isnan(magnitude)) // NaN has no other code
      return *encode(wide, std::numeric_limits<double>::infinity());
  }
  return *encode(wide, round_to(wide, magnitude));
}

} // namespace

std::string_view name_of(Multiplier multiplier) {
  return name_in(kMultipliers, multiplier);
}
std::optional<Multiplier> multiplier_named(std::string_view name) {
  return value_named(kMultipliers, name);
}

std::optional<AccumulatorChoice> parse_accumulator(std::string_view name) {
  if (name == "exact")
    return AccumulatorChoice{};
  if (name == "hybrid")
    return AccumulatorChoice{floating_format(8, kHybridMantissa), true};
  const auto format = parse_number_format(name);
  return format ? std::optional(AccumulatorChoice{format, false}) : std::nullopt;
}
void set_accumulator(Mac& mac, const AccumulatorChoice& choice) {
  mac.sum = choice.format;
  if (!choice.hybrid)
    return;
  mac.rounding.mode = RoundTo::zero;
  mac.multiplier = Multiplier::exact;
  mac.lanes = kHybridLanes;
}

std::optional<std::string> why_not_emulated(const Mac& mac) {
  if (mac.multiplier != Multiplier::exact && !is_emulated(mac.product))
    return fmt::format("{} has more than 32 bits, or 11 of exponent", name_of(mac.product));
  if (mac.operands && !(is_emulated(*mac.operands) && fits_single(*mac.operands)))
    return fmt::format("operands in {}, which has numbers that single precision lacks",
                       name_of(*mac.operands));
  if (mac.sum && !is_emulated(*mac.sum))
    return fmt::format("{} has more than 32 bits, or 11 of exponent", name_of(*mac.sum));
  if (is_variant(mac.multiplier) &&
      (!mac.product.floating || mac.product.top != TopCodes::ieee ||
       mac.product.exponent_bits < 2 || mac.product.exponent_bits > 7 ||
       mac.product.mantissa_bits < 1 || mac.product.mantissa_bits > 10))
    return fmt::format("multiplier {} is for operands in eXmY, X from 2 to 7 and Y from 1 to 10, "
                       "not {}",
                       name_of(mac.multiplier), name_of(mac.product));
  const bool is_wide = mac.sum == kDoublePrecision || (mac.multiplier != Multiplier::exact &&
                                                       !mac.fma && mac.product == kDoublePrecision);
  const Rounding& rounding = mac.rounding;
  if (is_wide && (rounding.mode != RoundTo::even || rounding.saturate || rounding.flush_subnormals))
    return "fp64 is the machine's arithmetic: to even, with infinity and subnormal numbers";
  if (rounding.mode == RoundTo::hysteresis)
    return "sums have no previous value for hysteresis";
  if (mac.lanes < 1)
    return "a unit adds at least one product at a time";
  return std::nullopt;
}

double decoded_operand(const Mac& mac, double x) {
  if (mac.operands)
    x = round_to(*mac.operands, x, converter_rounding(mac));
  if (!is_variant(mac.multiplier) || is_normal_number(mac.product, x))
    return x;
  const NumberFormat& format = mac.product;
  const bool top_is_numbers = mac.multiplier >= Multiplier::cfg4;
  if (std::isnan(x) && !top_is_numbers)
    return x;
  const std::uint64_t code = magnitude_code(format, x, top_is_numbers);
  NumberFormat read = format;
  if (top_is_numbers)
    read.top = TopCodes::infinity;
  double value = decode(read, code);
  const bool subnormal = code != 0 && code >> format.mantissa_bits == 0;
  if (subnormal && mac.multiplier == Multiplier::cfg5)
    value = std::ldexp(1.0, -format.bias()) + value / 2;
  if (subnormal && mac.multiplier == Multiplier::cfg6)
    value = 0;
  return std::copysign(value, x);
}

double mac_product(const Mac& mac, double a, double b, std::uint64_t output, std::uint64_t k) {
  return PlainUnit(mac).product(decoded_operand(mac, a), decoded_operand(mac, b), output, k);
}

double mac_sum(const Mac& mac, double c, double p, std::uint64_t output, std::uint64_t k) {
  return PlainUnit(mac).sum(c, p, output, k);
}

} // namespace monet

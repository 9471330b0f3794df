// Chooses the inner loop that emulates a unit on given operands: precision, rounding steps and
// instruction set. gemm.cpp and the execution of products (execute/walk) use it.
#include "numerics/shared/mac_engine.hpp"

#include "base/shared/names.hpp"
#include "base/shared/rng.hpp"

#include "monet/base/errors.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>

namespace monet {

namespace {

template <class Real>
struct Carrier;
template <>
struct Carrier<float> {
  static constexpr int kPrecision = 24;
  static constexpr int kLowestBit = -149;
  static constexpr int kSafeExponent = 100; ///< well below overflow of rounding by addition
  static constexpr int kExponentBits = 7;   ///< maximum exponent bits of a format
  static constexpr NumberFormat kNative = kSinglePrecision;
};
template <>
struct Carrier<double> {
  static constexpr int kPrecision = 53;
  static constexpr int kLowestBit = -1074;
  static constexpr int kSafeExponent = 960;
  static constexpr int kExponentBits = 9;
  static constexpr NumberFormat kNative = kDoublePrecision;
};

bool is_plain(const Rounding& rounding) {
  return rounding.mode == RoundTo::even && !rounding.saturate && !rounding.flush_subnormals;
}

int exponent_of(double x) {
  return x == 0 ? 0 : std::ilogb(x);
}

/// Maximum number of significant bits of a format's numbers.
int precision_of(const NumberFormat& format) {
  return format.floating ? format.mantissa_bits + 1 : format.bits();
}

/// Properties of all addends: they are multiples of a power of two and have a bounded magnitude.
struct Added {
  int bits = 0;       ///< significant bits
  int lowest_bit = 0; ///< lowest bit of any addend
  double largest = 0;
  bool finite = true;
};

/// Properties of chunks of exact products, scaled, before any rounding.
Added exact_products(const ProductRange& range) {
  Added added;
  added.finite = range.left.finite && range.right.finite;
  const double product = range.left.largest * range.right.largest;
  added.lowest_bit = range.left.lowest_bit + range.right.lowest_bit;
  added.largest = product * static_cast<double>(range.chunk);
  added.bits = range.left.significand_bits + range.right.significand_bits;
  if (range.chunk > 1)
    added.bits = added.largest == 0 ? 0 : exponent_of(added.largest) + 1 - added.lowest_bit;
  added.lowest_bit += range.min_scale;
  added.largest = std::ldexp(added.largest, range.largest_scale);
  return added;
}

bool is_on_grid(const Added& added, const NumberFormat& format) {
  if (!(added.largest <= largest_number(format)))
    return false;
  if (!format.floating)
    return added.lowest_bit >= -format.mantissa_bits;
  return added.bits <= precision_of(format) &&
         added.lowest_bit >= smallest_exponent(format) - format.mantissa_bits;
}

/// Whether a rounding step changes none of the addends.
bool is_idle(const RoundingStep& step, const Added& added, const ProductRange& range) {
  const bool infinity_stays =
      step.format.floating && !step.rounding.saturate &&
      (step.format.top == TopCodes::ieee || step.format.top == TopCodes::infinity);
  if (!(added.finite || infinity_stays) || !is_on_grid(added, step.format) ||
      !step.format.has_sign) // negative numbers become 0
    return false;
  const double smallest = std::ldexp(range.left.smallest * range.right.smallest, range.min_scale);
  return !step.rounding.flush_subnormals || range.chunk > 1 ||
         smallest >= smallest_normal(step.format);
}

Added rounded(const Added& added, const RoundingStep& to) {
  const NumberFormat& format = to.format;
  const bool floating = format.floating;
  const double most = largest_number(format);
  const bool beyond = !added.finite || !(added.largest <= most);
  const bool clamps = !floating || to.rounding.saturate || format.top == TopCodes::numbers;
  const bool cuts = to.rounding.mode == RoundTo::zero && added.finite; // except infinity
  const int least = (floating ? smallest_exponent(format) : 0) - format.mantissa_bits;
  Added result{std::min(added.bits, precision_of(format)), std::max(added.lowest_bit, least),
               std::min(added.largest, 2 * most), !beyond || clamps || cuts};
  if (beyond && (clamps || to.rounding.mode == RoundTo::zero)) {
    // The largest number may have more bits than the numbers that are cut to it.
    const int last = (floating ? largest_exponent(format) : 0) - format.mantissa_bits;
    result = {precision_of(format), std::min(result.lowest_bit, last), most, result.finite};
  }
  return result;
}

/// Whether the loops can round numbers of Real to the format.
template <class Real>
bool has_grid(const NumberFormat& format, const Rounding& rounding) {
  using C = Carrier<Real>;
  const int random = rounding.mode == RoundTo::stochastic ? rounding.random_bits : 0;
  if (precision_of(format) + random > C::kPrecision - 2)
    return false;
  if (!format.floating)
    return format.whole_bits + 1 < C::kSafeExponent;
  return format.exponent_bits <= C::kExponentBits;
}

template <class Real>
class Planner {
public:
  Planner(const Mac& mac, const ProductRange& range)
      : steps_(steps_of(mac)), mode_(mac.rounding.mode), range_(range),
        added_(exact_products(range)) {
    plan_.zero_wins = zero_wins(mac) && !(range.left.finite && range.right.finite);
    plan_.random_bits = mac.rounding.random_bits;
    plan_.mode = static_cast<lanes::Mode>(mode_);
    if (steps_.product)
      plan_.product_mode = static_cast<lanes::Mode>(steps_.product->rounding.mode);
  }

  std::optional<lanes::Arithmetic<Real>> plan() {
    if (!holds_products())
      return std::nullopt;
    if (!plan_product(steps_.product, plan_.product, plan_.rounds_product) ||
        !plan_product(steps_.convert, plan_.convert, plan_.converts) || !plan_sum())
      return std::nullopt;
    if (plan_.converts && !plan_.rounds_product && mode_ == RoundTo::even) {
      plan_.product = plan_.convert; // the fast loops support a single rounding of products
      std::swap(plan_.rounds_product, plan_.converts);
    }
    return plan_;
  }

private:
  using C = Carrier<Real>;

  /// Whether products, or chunks of them, are exact in Real, or rounded as single precision
  /// requires.
  bool holds_products() {
    const double largest = std::max(added_.largest, range_.left.largest * range_.right.largest);
    if (steps_.product && steps_.product->format == C::kNative &&
        is_plain(steps_.product->rounding) && range_.chunk == 1) {
      added_ = rounded(added_, *steps_.product);
      steps_.product.reset();
      return true;
    }
    const int lowest =
        std::min(added_.lowest_bit, range_.left.lowest_bit + range_.right.lowest_bit);
    if (added_.bits > C::kPrecision || lowest < C::kLowestBit ||
        !(largest < std::ldexp(1.0, C::kSafeExponent)))
      return false;
    if (!range_.powers_of_two) { // the scaled chunk is rounded to double
      added_.bits = C::kPrecision;
      added_.lowest_bit -= C::kPrecision;
    }
    return range_.powers_of_two || std::is_same_v<Real, double>;
  }

  /// Whether numbers up to `largest` are within the range of the format.
  bool fits(const RoundingStep& step, double largest) const {
    return added_.finite && step.format.has_sign && largest <= largest_number(step.format);
  }

  /// Whether all addends are well below the overflow of rounding by addition.
  bool is_safe() const { return added_.largest < std::ldexp(1.0, C::kSafeExponent); }

  bool plan_product(const std::optional<RoundingStep>& step, lanes::Grid<Real>& grid, bool& used) {
    if (!step || is_idle(*step, added_, range_))
      return true;
    const bool is_product = &step == &steps_.product;
    if (!has_grid<Real>(step->format, step->rounding) || !is_safe() ||
        (is_product && range_.chunk > 1))
      return false;
    grid = grid_of<Real>(step->format, step->rounding);
    used = true;
    plan_.product_fits = fits(*step, added_.largest);
    plan_.flushes = plan_.flushes || grid.smallest_normal > 0;
    added_ = rounded(added_, *step);
    return true;
  }

  bool plan_sum() {
    if (!steps_.sum) {
      // Without rounding of sums, Real must hold every sum exactly.
      const double all = added_.largest * static_cast<double>(range_.steps);
      return std::is_same_v<Real, double> &&
             (all == 0 || exponent_of(all) + 1 - added_.lowest_bit <= C::kPrecision);
    }
    const NumberFormat& format = steps_.sum->format;
    const Rounding& rounding = steps_.sum->rounding;
    if (format == C::kNative && is_plain(rounding))
      return true;
    if (!has_grid<Real>(format, rounding) || !is_safe())
      return false;
    // The bound doubles twice: a step moves a number of the format by at most twice the addend,
    // which was rounded itself.
    plan_.sum_fits = fits(*steps_.sum, 4 * added_.largest * static_cast<double>(range_.steps));
    plan_.rounds_sum = true;
    plan_.sum = grid_of<Real>(format, rounding);
    plan_.flushes = plan_.flushes || plan_.sum.smallest_normal > 0;
    const int precision = precision_of(format);
    if (!format.floating && added_.lowest_bit >= -format.mantissa_bits) {
      plan_.on_grid = added_.largest < std::ldexp(1.0, C::kPrecision - 2 - format.mantissa_bits);
      plan_.exact_sum = !plan_.on_grid;
      return true;
    }
    // Double rounding is innocuous if no addend can itself be halfway between two numbers of the
    // format, and Real's rounding error is far below half of their distance.
    const bool innocuous = mode_ == RoundTo::even && added_.bits <= precision &&
                           precision + added_.bits < C::kPrecision;
    plan_.exact_sum = !innocuous;
    return true;
  }

  UnitSteps steps_;
  RoundTo mode_;
  const ProductRange& range_;
  Added added_;
  lanes::Arithmetic<Real> plan_;
};

Instructions best_instructions() {
  if (is_available(Instructions::avx512))
    return Instructions::avx512;
  return is_available(Instructions::avx2) ? Instructions::avx2 : Instructions::portable;
}

constexpr std::array kInstructions{Named<Instructions>{"best", Instructions::best},
                                   Named<Instructions>{"portable", Instructions::portable},
                                   Named<Instructions>{"avx2", Instructions::avx2},
                                   Named<Instructions>{"avx512", Instructions::avx512}};

} // namespace

std::optional<Instructions> instructions_named(std::string_view name) {
  return value_named(kInstructions, name);
}

bool is_available(Instructions instructions) {
#if defined(__x86_64__)
  if (instructions == Instructions::avx2)
    return __builtin_cpu_supports("avx2") != 0;
  if (instructions == Instructions::avx512)
    return __builtin_cpu_supports("avx512f") != 0 && __builtin_cpu_supports("avx512dq") != 0 &&
           __builtin_cpu_supports("avx512bw") != 0 && __builtin_cpu_supports("avx512vl") != 0;
#endif
  return instructions == Instructions::best || instructions == Instructions::portable;
}

std::string_view name_of_best_instructions() {
  return kernels_of(Instructions::best).name;
}

const lanes::Kernels& kernels_of(Instructions instructions) {
  internal_check(is_available(instructions), "instructions that this machine does not have");
  const Instructions chosen =
      instructions == Instructions::best ? best_instructions() : instructions;
#if defined(__x86_64__)
  if (chosen == Instructions::avx512)
    return lanes::avx512_kernels();
  if (chosen == Instructions::avx2)
    return lanes::avx2_kernels();
#endif
  internal_check(chosen == Instructions::portable, "instructions without inner loops");
  return lanes::portable_kernels();
}

template <class Real>
lanes::Grid<Real> grid_of(const NumberFormat& format, const Rounding& rounding) {
  lanes::Grid<Real> grid;
  const bool full = !rounding.symmetric && format.has_sign;
  grid.largest = static_cast<Real>(largest_number(format));
  if (format.floating) {
    grid.mantissa_bits = format.mantissa_bits;
    grid.min_exponent = smallest_exponent(format);
    grid.lowest = -grid.largest;
    grid.clamps = rounding.saturate || format.top == TopCodes::numbers;
    grid.overflow = format.top == TopCodes::nan ? std::numeric_limits<Real>::quiet_NaN()
                                                : std::numeric_limits<Real>::infinity();
    grid.smallest_normal =
        rounding.flush_subnormals ? static_cast<Real>(smallest_normal(format)) : Real{0};
    return grid;
  }
  const int binade = format.whole_bits - (format.has_sign ? 2 : 1);
  grid.mantissa_bits = binade + format.mantissa_bits;
  grid.min_exponent = binade;
  grid.lowest = full ? static_cast<Real>(lowest_number(format)) : -grid.largest;
  if (!format.has_sign)
    grid.lowest = 0;
  grid.clamps = true;
  return grid;
}
template lanes::Grid<float> grid_of<float>(const NumberFormat&, const Rounding&);
template lanes::Grid<double> grid_of<double>(const NumberFormat&, const Rounding&);

MacEngine::MacEngine(const Mac& mac, const ProductRange& range, Instructions instructions)
    : kernels_(&kernels_of(instructions)) {
  if (range.chunk > lanes::kLongestChunk)
    return;
  single_ = Planner<float>(mac, range).plan();
  if (!single_)
    double_ = Planner<double>(mac, range).plan();
}

bool MacEngine::is_random() const {
  const lanes::Mode mode = single_ ? single_->mode : double_ ? double_->mode : lanes::Mode::even;
  return mode == lanes::Mode::stochastic;
}

lanes::BlockRun block_run(const NumberFormat& element) {
  Rounding inside;
  inside.saturate = true;
  inside.symmetric = true;
  lanes::BlockRun run;
  run.grid = grid_of<float>(element, inside);
  run.largest_exponent = largest_exponent(element);
  run.zero_code = e8m0_code(power_scale(element, ScaleMode::floor, 0));
  return run;
}

void fill_keys(std::uint64_t seed, std::uint64_t first, std::span<std::uint32_t> low,
               std::span<std::uint32_t> high) {
  for (std::size_t i = 0; i < low.size(); ++i) {
    const std::uint64_t key = random_bits(seed, first + i);
    low[i] = static_cast<std::uint32_t>(key);
    high[i] = static_cast<std::uint32_t>(key >> 32);
  }
}

} // namespace monet

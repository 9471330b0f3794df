// Converts whole operands to the numbers that a unit's multiplier reads, and collects their facts;
// runs before the products.
#include "base/shared/parallel.hpp"
#include "numerics/shared/mac_engine.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>

namespace monet {

namespace {

constexpr std::size_t kOperandRun = 1 << 14; ///< numbers per task, which fit the cache

OperandFacts facts_of_bits(const lanes::FactBits& bits) {
  OperandFacts facts;
  facts.finite = bits.specials == 0;
  facts.largest = static_cast<double>(std::bit_cast<float>(bits.largest));
  if (bits.largest == 0)
    return facts;
  facts.smallest = static_cast<double>(std::bit_cast<float>(bits.smallest));
  facts.significand_bits = 24 - std::countr_zero(bits.mantissas | 0x00800000U);
  facts.lowest_bit = bits.lowest - 150;
  return facts;
}

void read_run(std::span<float> run, const Mac& mac, Instructions instructions) {
  const std::array<std::int64_t, 1> shape{static_cast<std::int64_t>(run.size())};
  if (mac.operands)
    round_tensor(shape, run, {*mac.operands, std::nullopt}, converter_rounding(mac),
                 {.instructions = instructions});
  if (mac.multiplier < Multiplier::cfg1)
    return;
  TensorFormat format{mac.product, std::nullopt};
  if (zero_wins(mac))
    format.element.top = TopCodes::infinity;
  round_tensor(shape, run, format, {}, {.instructions = instructions});
  if (!zero_wins(mac))
    return;
  lanes::SubnormalRule reading;
  reading.least = static_cast<float>(smallest_normal(mac.product));
  reading.base = static_cast<float>(std::ldexp(1.0, -mac.product.bias()));
  reading.as_normal = mac.multiplier == Multiplier::cfg5;
  reading.as_zero = mac.multiplier == Multiplier::cfg6;
  kernels_of(instructions).read(run.data(), static_cast<std::ptrdiff_t>(run.size()), reading);
}

} // namespace

Rounding converter_rounding(const Mac& mac) {
  Rounding rounding;
  rounding.saturate = mac.rounding.saturate;
  return rounding;
}

OperandFacts read_operands(std::span<float> numbers, const Mac& mac, int jobs,
                           Instructions instructions) {
  std::vector<OperandFacts> facts((numbers.size() + kOperandRun - 1) / kOperandRun);
  parallel_runs(numbers.size(), kOperandRun, jobs, [&](std::size_t first, std::size_t count) {
    const auto run = numbers.subspan(first, count);
    read_run(run, mac, instructions);
    facts[first / kOperandRun] = facts_of(run, instructions);
  });
  return merged(facts);
}

OperandFacts merged(std::span<const OperandFacts> facts) {
  OperandFacts all;
  for (const OperandFacts& part : facts) {
    all.finite = all.finite && part.finite;
    if (part.largest == 0)
      continue;
    all.lowest_bit = all.largest == 0 ? part.lowest_bit : std::min(all.lowest_bit, part.lowest_bit);
    all.smallest = all.largest == 0 ? part.smallest : std::min(all.smallest, part.smallest);
    all.largest = std::max(all.largest, part.largest);
    all.significand_bits = std::max(all.significand_bits, part.significand_bits);
  }
  return all;
}

OperandFacts facts_of(std::span<const float> numbers, Instructions instructions) {
  lanes::FactBits bits;
  kernels_of(instructions).facts(numbers.data(), static_cast<std::ptrdiff_t>(numbers.size()), bits);
  return facts_of_bits(bits);
}

OperandFacts facts_of(std::span<const double> numbers) {
  OperandFacts facts;
  facts.lowest_bit = std::numeric_limits<int>::max();
  double smallest = std::numeric_limits<double>::infinity();
  for (const double number : numbers) {
    const double magnitude = std::abs(number);
    if (magnitude == 0)
      continue;
    if (!std::isfinite(magnitude)) {
      facts.finite = false;
      continue;
    }
    facts.largest = std::max(facts.largest, magnitude);
    smallest = std::min(smallest, magnitude);
    const auto bits = std::bit_cast<std::uint64_t>(magnitude);
    const auto field = static_cast<int>(bits >> 52);
    const std::uint64_t mantissa =
        (bits & ((std::uint64_t{1} << 52) - 1)) | (field == 0 ? 0 : std::uint64_t{1} << 52);
    const int zeros = std::countr_zero(mantissa);
    facts.lowest_bit = std::min(facts.lowest_bit, std::max(field, 1) - 1075 + zeros);
    facts.significand_bits =
        std::max(facts.significand_bits, 64 - std::countl_zero(mantissa) - zeros);
  }
  if (facts.largest == 0)
    facts.lowest_bit = 0;
  else
    facts.smallest = smallest;
  return facts;
}

} // namespace monet

// NumberGenerator: random numbers by name, seed and index, for filling tensors and drawing masks.
#include "execute/shared/generator.hpp"

#include "base/shared/fnv1a.hpp"
#include "base/shared/rng.hpp"

namespace monet {

namespace {

constexpr std::uint64_t kGolden = 0x9E3779B97F4A7C15U;

} // namespace

NumberGenerator::NumberGenerator(std::string_view name, std::uint64_t seed)
    : key_(fnv1a(name) ^ (seed * kGolden)) {}

std::uint64_t NumberGenerator::raw(std::uint64_t i) const {
  return random_bits(key_, i);
}

double NumberGenerator::uniform(std::uint64_t i) const {
  return static_cast<double>(raw(i) >> 11) * 0x1p-52 - 1.0;
}

double NumberGenerator::fraction(std::uint64_t i) const {
  return random_unit(key_, i);
}

std::int64_t NumberGenerator::index(std::uint64_t i, std::int64_t count) const {
  return static_cast<std::int64_t>(raw(i) % static_cast<std::uint64_t>(count));
}

} // namespace monet

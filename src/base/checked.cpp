#include "monet/base/checked.hpp"

#include "monet/base/errors.hpp"

namespace monet {

std::int64_t checked_multiply(std::int64_t a, std::int64_t b) {
  std::int64_t result = 0;
  if (__builtin_mul_overflow(a, b, &result)) {
    throw InputError({}, "a product of sizes overflows 64 bits");
  }
  return result;
}

std::int64_t checked_add(std::int64_t a, std::int64_t b) {
  std::int64_t result = 0;
  if (__builtin_add_overflow(a, b, &result)) {
    throw InputError({}, "a sum of sizes overflows 64 bits");
  }
  return result;
}

std::int64_t checked_product(std::span<const std::int64_t> factors) {
  std::int64_t product = 1;
  for (std::int64_t factor : factors)
    product = checked_multiply(product, factor);
  return product;
}

} // namespace monet

// Overflow-checked integer arithmetic and internal checks that throw InternalError; used by every
// stage.
#include "base/shared/checked.hpp"

#include "monet/base/errors.hpp"

#include <fmt/core.h>

namespace monet {

void throw_overflow(std::string_view what) {
  throw InputError({}, fmt::format("a {} of sizes overflows 64 bits", what));
}

std::int64_t checked_product(std::span<const std::int64_t> factors) {
  std::int64_t product = 1;
  for (std::int64_t factor : factors)
    product = checked_multiply(product, factor);
  return product;
}

} // namespace monet

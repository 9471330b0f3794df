// The sizes of products that pairs may have.
#pragma once

#include "monet/core_cost/backward.hpp"

namespace monet {

/// No dimension beyond kMostGemmDimension, and no more multiplications than kMostGemmMacs. All are
/// at least 1.
inline bool gemm_is_within_limits(std::int64_t m, std::int64_t k, std::int64_t n,
                                  std::int64_t repeats) {
  if (m > kMostGemmDimension || k > kMostGemmDimension || n > kMostGemmDimension)
    return false;
  std::int64_t macs = m;
  for (const std::int64_t factor : {k, n, repeats}) {
    if (macs > kMostGemmMacs / factor)
      return false;
    macs *= factor;
  }
  return true;
}

} // namespace monet

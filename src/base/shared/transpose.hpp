// Cache-friendly traversal of a matrix and its transpose.
#pragma once

#include <algorithm>
#include <cstddef>

namespace monet {

/// Calls f(from, to) for all elements of the columns [first, last) of a row-major matrix: `from` is
/// the index in the matrix, `to` in its transpose. Runs in blocks that fit the cache.
template <class F>
void for_each_transposed(std::ptrdiff_t rows, std::ptrdiff_t columns, std::ptrdiff_t first,
                         std::ptrdiff_t last, F f) {
  constexpr std::ptrdiff_t kBlock = 16;
  for (std::ptrdiff_t block = first; block < last; block += kBlock) {
    const std::ptrdiff_t end = std::min(last, block + kBlock);
    for (std::ptrdiff_t row = 0; row < rows; ++row) {
      for (std::ptrdiff_t column = block; column < end; ++column)
        f(row * columns + column, column * rows + row);
    }
  }
}

template <class Real>
void transpose(const Real* from, std::ptrdiff_t rows, std::ptrdiff_t columns, Real* to) {
  for_each_transposed(rows, columns, 0, columns,
                      [=](std::ptrdiff_t i, std::ptrdiff_t j) { to[j] = from[i]; });
}

} // namespace monet

// Constants of a linear law through a few points, for tests that fit what docs say was fitted.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

namespace monet::test {

/// Solves the normal equations; the columns must be independent.
inline std::vector<double> min_squares(const std::vector<std::vector<double>>& rows,
                                       const std::vector<double>& values) {
  const std::size_t n = rows.front().size();
  std::vector<std::vector<double>> m(n, std::vector<double>(n + 1, 0));
  for (std::size_t r = 0; r < rows.size(); ++r)
    for (std::size_t i = 0; i < n; ++i) {
      for (std::size_t j = 0; j < n; ++j)
        m[i][j] += rows[r][i] * rows[r][j];
      m[i][n] += rows[r][i] * values[r];
    }
  for (std::size_t i = 0; i < n; ++i) {
    std::size_t pivot = i;
    for (std::size_t k = i; k < n; ++k)
      pivot = m[k][i] * m[k][i] > m[pivot][i] * m[pivot][i] ? k : pivot;
    std::swap(m[i], m[pivot]);
    for (std::size_t k = 0; k < n; ++k) {
      const double factor = k == i ? 0 : m[k][i] / m[i][i];
      for (std::size_t j = 0; j <= n; ++j)
        m[k][j] -= factor * m[i][j];
    }
  }
  std::vector<double> constants(n);
  for (std::size_t i = 0; i < n; ++i)
    constants[i] = m[i][n] / m[i][i];
  return constants;
}

} // namespace monet::test

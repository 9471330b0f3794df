// What designs may come to, guessed from those evaluated: each value of each parameter has its own
// factor. Decides orders only, never what is left out.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace monet {

/// A sum of one effect per parameter, fitted to logarithms of figures by sweeps over the
/// parameters (Gauss-Seidel on the normal equations); values rarely seen are drawn to no effect.
class MainEffects {
public:
  explicit MainEffects(std::vector<std::uint32_t> values) : values_(std::move(values)) {}
  void fit(std::span<const std::vector<std::uint32_t>> choices, std::span<const double> logs);
  double at(std::span<const std::uint32_t> choices) const;

private:
  std::vector<std::uint32_t> values_; ///< per parameter, how many
  double mean_ = 0;
  std::vector<std::vector<double>> effects_; ///< [parameter][value]
};

} // namespace monet

// Estimates of designs' figures from evaluated designs: one factor per value of each parameter.
// The estimates decide only the order of evaluation, never which designs are left out.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace monet {

/// A sum of one effect per parameter, fitted to logarithms of figures by sweeps over the parameters
/// (Gauss-Seidel on the normal equations). Effects of rarely seen values shrink towards zero.
class MainEffects {
public:
  explicit MainEffects(std::vector<std::uint32_t> values) : values_(std::move(values)) {}
  void fit(std::span<const std::vector<std::uint32_t>> choices, std::span<const double> logs);
  double at(std::span<const std::uint32_t> choices) const;

private:
  std::vector<std::uint32_t> values_; ///< number of values per parameter
  double mean_ = 0;
  std::vector<std::vector<double>> effects_; ///< [parameter][value]
};

} // namespace monet

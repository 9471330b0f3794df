// Fits main effects of parameter values to evaluated designs. The genetic and racing strategies
// order candidates by them.
#include "explore/strategy/main_effects.hpp"

#include <numeric>

namespace monet {

void MainEffects::fit(std::span<const std::vector<std::uint32_t>> choices,
                      std::span<const double> logs) {
  constexpr int kSweeps = 12;
  constexpr double kPrior = 0.5; // weight of a prior observation without effect
  effects_.clear();
  for (const std::uint32_t count : values_)
    effects_.emplace_back(count, 0.0);
  mean_ = logs.empty()
              ? 0
              : std::accumulate(logs.begin(), logs.end(), 0.0) / static_cast<double>(logs.size());
  std::vector<double> rest(logs.begin(), logs.end());
  for (double& value : rest)
    value -= mean_;
  for (int sweep = 0; sweep < kSweeps; ++sweep)
    for (std::size_t p = 0; p < values_.size(); ++p) {
      std::vector<double> sum(values_[p], 0), count(values_[p], kPrior);
      for (std::size_t i = 0; i < rest.size(); ++i) {
        rest[i] += effects_[p][choices[i][p]];
        sum[choices[i][p]] += rest[i];
        count[choices[i][p]] += 1;
      }
      for (std::size_t v = 0; v < sum.size(); ++v)
        effects_[p][v] = sum[v] / count[v];
      for (std::size_t i = 0; i < rest.size(); ++i)
        rest[i] -= effects_[p][choices[i][p]];
    }
}

double MainEffects::at(std::span<const std::uint32_t> choices) const {
  double sum = mean_;
  for (std::size_t p = 0; p < effects_.size(); ++p)
    sum += effects_[p][choices[p]];
  return sum;
}

} // namespace monet

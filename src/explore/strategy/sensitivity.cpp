// Computes the sensitivity of the objectives to each parameter from evaluated designs: shares of
// the variance and medians per value. Reports of explorations show it.
#include "explore/shared/sensitivity.hpp"

#include "monet/base/errors.hpp"

#include <algorithm>
#include <cmath>
#include <set>

namespace monet {

namespace {

/// The feasible results with their parameter values.
class Sample {
public:
  Sample(const Space& space, std::span<const DesignResult> results) {
    for (const Parameter& parameter : space.parameters)
      values_.push_back(parameter.values.size());
    choice_.resize(values_.size());
    for (const DesignResult& result : results) {
      if (!result.feasible)
        continue;
      feasible_.push_back(&result);
      DesignId rest = result.id;
      for (std::size_t p = values_.size(); p-- > 0; rest /= values_[p])
        choice_[p].push_back(static_cast<std::uint32_t>(rest % values_[p]));
      internal_check(rest == 0, "a result of a design that the space does not have");
    }
    std::uint64_t size = 1;
    for (const std::size_t count : values_) {
      complete_ = complete_ && size <= feasible_.size();
      size *= count;
    }
    complete_ = complete_ && size == feasible_.size();
  }

  ObjectiveSensitivity of(std::size_t run, Objective objective) const {
    ObjectiveSensitivity found;
    found.objective = objective;
    const FrontRequest front{run, {objective}};
    std::vector<double> figures, logs;
    double sum = 0;
    for (const DesignResult* result : feasible_) {
      figures.push_back(objective_values(*result, front).front());
      logs.push_back(figures.back() > 0 ? std::log(figures.back()) : std::nan(""));
      if (figures.back() > 0) {
        sum += logs.back();
        ++found.designs;
      }
    }
    const double mean = found.designs > 0 ? sum / static_cast<double>(found.designs) : 0;
    double squares = 0;
    for (const double log : logs)
      squares += std::isnan(log) ? 0 : (log - mean) * (log - mean);
    found.deviation =
        found.designs > 0 ? std::sqrt(squares / static_cast<double>(found.designs)) : 0;
    constexpr double kRounding = 1e-12; // relative rounding error of equal figures
    if (found.deviation <= kRounding * std::max(1.0, std::abs(mean)))
      found.deviation = squares = 0;
    found.together = found.deviation > 0 ? 1 : 0;
    for (std::size_t p = 0; p < values_.size(); ++p) {
      found.parameters.push_back({share(p, logs, mean, squares), effects(p, figures)});
      found.together = std::max(0.0, found.together - found.parameters.back().share);
    }
    return found;
  }

private:
  /// Share of the variance that a parameter explains (0 to 1), less the share expected by chance.
  /// `squares`: sum of squared differences of all logarithms from their mean.
  double share(std::size_t parameter, const std::vector<double>& logs, double mean,
               double squares) const {
    std::vector<double> sums(values_[parameter], 0);
    std::vector<double> counts(values_[parameter], 0);
    for (std::size_t i = 0; i < logs.size(); ++i) {
      if (std::isnan(logs[i]))
        continue;
      sums[choice_[parameter][i]] += logs[i] - mean;
      counts[choice_[parameter][i]] += 1;
    }
    double between = 0, groups = 0, all = 0;
    for (std::size_t v = 0; v < sums.size(); ++v) {
      if (counts[v] == 0)
        continue;
      between += sums[v] * sums[v] / counts[v];
      groups += 1;
      all += counts[v];
    }
    if (squares <= 0 || groups < 2)
      return 0;
    double chance = 0;
    if (!complete_) {
      if (all <= groups)
        return 0;
      chance = (groups - 1) * (squares - between) / (all - groups);
    }
    return std::clamp((between - chance) / squares, 0.0, 1.0);
  }

  std::vector<ValueEffect> effects(std::size_t parameter,
                                   const std::vector<double>& figures) const {
    std::vector<ValueEffect> found(values_[parameter]);
    std::vector<std::size_t> end(values_[parameter], 0);
    for (const std::uint32_t value : choice_[parameter])
      ++found[value].count;
    std::size_t sum = 0;
    for (std::size_t v = 0; v < found.size(); ++v)
      end[v] = sum += found[v].count;
    std::vector<double> sorted(figures.size()); // by value
    for (std::size_t i = 0; i < figures.size(); ++i)
      sorted[--end[choice_[parameter][i]]] = figures[i];
    for (std::size_t v = 0; v < found.size(); ++v) {
      if (found[v].count == 0)
        continue;
      const auto first = sorted.begin() + static_cast<std::ptrdiff_t>(end[v]);
      const auto last = first + static_cast<std::ptrdiff_t>(found[v].count);
      const auto middle = first + (last - first) / 2;
      std::nth_element(first, middle, last);
      const double upper = *middle;
      const double lower = found[v].count % 2 == 1 ? upper : *std::max_element(first, middle);
      found[v].median = lower + (upper - lower) / 2;
      found[v].least = *std::min_element(first, middle + 1);
    }
    return found;
  }

  std::vector<std::size_t> values_;
  std::vector<const DesignResult*> feasible_;
  std::vector<std::vector<std::uint32_t>> choice_; ///< [parameter][feasible result]
  bool complete_ = true;                           ///< all designs of the space are included
};

} // namespace

Sensitivity sensitivity(const Space& space, std::span<const DesignResult> results) {
  std::set<Objective> objectives;
  std::size_t runs = space.workload.runs.size();
  for (const FrontRequest& front : space.fronts) {
    objectives.insert(front.objectives.begin(), front.objectives.end());
    runs = std::max(runs, front.run + 1);
  }
  const Sample sample(space, results);
  Sensitivity found;
  found.runs.resize(runs);
  for (std::size_t run = 0; run < runs; ++run)
    for (const Objective objective : objectives)
      found.runs[run].push_back(sample.of(run, objective));
  return found;
}

} // namespace monet

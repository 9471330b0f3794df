// Pareto fronts that are updated point by point, and tests whether they dominate a design.
#pragma once

#include "base/shared/pareto.hpp"

#include "monet/explore/strategy.hpp"

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

namespace monet {

/// Non-dominated points in lexicographic order without duplicates. With two objectives a test is a
/// binary search; with more, all lexicographically smaller points are scanned.
class FrontPoints {
public:
  /// Whether a point of the front is no worse than `point` in every objective and better in one.
  bool dominates(std::span<const double> point) const {
    const std::size_t end = not_behind(point);
    if (point.size() == 2)
      return end > 0 && monet::dominates(points_[end - 1], point);
    return std::any_of(points_.begin(), points_.begin() + static_cast<std::ptrdiff_t>(end),
                       [&](const Objectives& known) { return monet::dominates(known, point); });
  }

  /// Adds a point and removes those that it dominates. Returns false if it is dominated or present.
  bool add(const Objectives& point) {
    const std::size_t end = not_behind(point);
    if ((end > 0 && points_[end - 1] == point) || dominates(point))
      return false;
    const auto at = points_.begin() + static_cast<std::ptrdiff_t>(end);
    points_.erase(
        std::remove_if(at, points_.end(),
                       [&](const Objectives& known) { return monet::dominates(point, known); }),
        points_.end());
    points_.insert(points_.begin() + static_cast<std::ptrdiff_t>(end), point);
    return true;
  }

  const std::vector<Objectives>& all() const { return points_; }
  std::vector<Objectives>& all() { return points_; }

private:
  /// Number of points that are lexicographically no greater than `point`.
  std::size_t not_behind(std::span<const double> point) const {
    const auto at = std::upper_bound(points_.begin(), points_.end(), point,
                                     [](std::span<const double> value, const Objectives& known) {
                                       return std::lexicographical_compare(
                                           value.begin(), value.end(), known.begin(), known.end());
                                     });
    return static_cast<std::size_t>(at - points_.begin());
  }

  std::vector<Objectives> points_;
};

/// The fronts of the results so far; they decide which designs need no further evaluation.
struct KnownFronts {
  struct Front {
    FrontRequest request;
    FrontPoints points;
  };
  std::vector<Front> fronts;

  /// Whether every front has a result that strictly dominates the figures of a result or a bound.
  /// False for infeasible ones.
  template <class Figures>
  bool beat(const Figures& figures) const {
    return figures.feasible && std::ranges::all_of(fronts, [&](const Front& front) {
             return front.points.dominates(objective_values(figures, front.request));
           });
  }
};

} // namespace monet

// Which designs no other dominates, in n log n for two and three objectives and n log^2 n for four.
#include "monet/base/errors.hpp"
#include "monet/explore/explore.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <numeric>

namespace monet {

namespace {

constexpr std::size_t kMost = 4; // objectives

/// Objectives from the back, zeros before them: points of fewer objectives are points of four.
struct Point {
  std::array<double, kMost> at{};
  DesignId id = 0;
};

/// The points so far in two objectives that no other of them is at most in both: the second falls
/// as the first grows.
class Staircase {
public:
  /// Whether a point that was added is at most (x, y) in both.
  bool covers(double x, double y) const {
    auto step = steps_.upper_bound(x);
    return step != steps_.begin() && std::prev(step)->second <= y;
  }
  void add(double x, double y) {
    if (covers(x, y))
      return;
    auto step = steps_.lower_bound(x);
    while (step != steps_.end() && step->second >= y)
      step = steps_.erase(step);
    steps_.emplace_hint(step, x, y);
  }

private:
  std::map<double, double> steps_;
};

/// Finds the dominated among different points in lexicographic order. There a point can only be
/// dominated by an earlier one, and is by every earlier one that is at most it in all objectives
/// but the first (Kung, Luccio and Preparata 1975).
class Sieve {
public:
  explicit Sieve(const std::vector<Point>& points)
      : points_(points), dominated_(points.size(), false) {}

  std::vector<bool> run() {
    if (points_.empty() || points_.front().at[0] == points_.back().at[0])
      sweep();
    else
      divide(0, points_.size());
    return std::move(dominated_);
  }

private:
  /// The first objective is the same for all: then the second one is what the order begins with.
  void sweep() {
    Staircase stairs;
    for (std::size_t i = 0; i < points_.size(); ++i) {
      const auto& at = points_[i].at;
      dominated_[i] = stairs.covers(at[2], at[3]);
      if (!dominated_[i])
        stairs.add(at[2], at[3]);
    }
  }

  /// Marks those of [begin, end) that others of it dominate; depth log2 of their number.
  void divide(std::size_t begin, std::size_t end) {
    if (end - begin < 2)
      return;
    const std::size_t middle = begin + (end - begin) / 2;
    divide(begin, middle);
    divide(middle, end);
    std::vector<std::size_t> order;
    for (std::size_t i = begin; i < end; ++i) {
      if (!dominated_[i])
        order.push_back(i);
    }
    // Of equal ones the earlier, which comes from the first half when any does, goes first.
    std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
      const double x = points_[a].at[1];
      const double y = points_[b].at[1];
      return x != y ? x < y : a < b;
    });
    Staircase stairs;
    for (const std::size_t i : order) {
      const auto& at = points_[i].at;
      if (i < middle)
        stairs.add(at[2], at[3]);
      else
        dominated_[i] = stairs.covers(at[2], at[3]);
    }
  }

  const std::vector<Point>& points_;
  std::vector<bool> dominated_;
};

std::vector<Point> points_of(std::span<const DesignResult> results, const FrontRequest& front) {
  internal_check(!front.objectives.empty() && front.objectives.size() <= kMost,
                 "a front of no or too many objectives");
  std::vector<Point> points;
  points.reserve(results.size());
  for (const DesignResult& result : results) {
    if (!result.feasible)
      continue;
    const std::vector<double> values = objective_values(result, front);
    Point point;
    for (std::size_t i = 0; i < values.size(); ++i) {
      internal_check(!std::isnan(values[i]), "a design's figure is no number");
      point.at[kMost - values.size() + i] = values[i];
    }
    point.id = result.id;
    points.push_back(point);
  }
  std::sort(points.begin(), points.end(), [](const Point& a, const Point& b) {
    return a.at != b.at ? a.at < b.at : a.id < b.id;
  });
  return points;
}

} // namespace

std::vector<DesignId> front_of(std::span<const DesignResult> results, const FrontRequest& front) {
  const std::vector<Point> points = points_of(results, front);
  std::vector<Point> different;
  for (const Point& point : points) {
    if (different.empty() || different.back().at != point.at)
      different.push_back(point);
  }
  const std::vector<bool> dominated = Sieve(different).run();
  std::vector<DesignId> ids;
  std::size_t group = 0;
  for (const Point& point : points) {
    if (point.at != different[group].at)
      ++group;
    if (!dominated[group])
      ids.push_back(point.id);
  }
  return ids;
}

} // namespace monet

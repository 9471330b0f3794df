// Pareto fronts and hypervolumes of up to four minimised objectives; searches keep and compare
// their results with them.
#include "base/shared/pareto.hpp"

#include "monet/base/errors.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>

namespace monet {

namespace {

using Point = std::array<double, kMaxObjectives>;
constexpr double kInfinite = std::numeric_limits<double>::infinity();

/// Front of points with two minimised objectives, updated as points arrive, and the area between
/// the front and a reference point.
class Staircase {
public:
  explicit Staircase(double x = kInfinite, double y = kInfinite) : x_(x), y_(y) {}

  double area() const { return area_; }
  /// Whether an added point is at most (x, y) in both objectives.
  bool covers(double x, double y) const {
    const auto step = steps_.upper_bound(x);
    return step != steps_.begin() && std::prev(step)->second <= y;
  }
  void add(double x, double y) {
    if (covers(x, y))
      return;
    // Steps are ordered by rising x and falling y. Steps with at least this x and y are removed.
    auto step = steps_.lower_bound(x);
    double roof = step == steps_.begin() ? y_ : std::prev(step)->second;
    double at = x;
    for (; step != steps_.end() && step->second >= y; step = steps_.erase(step)) {
      area_ += (step->first - at) * (roof - y);
      at = step->first;
      roof = step->second;
    }
    area_ += ((step == steps_.end() ? x_ : step->first) - at) * (roof - y);
    steps_.emplace_hint(step, x, y);
  }

private:
  double x_, y_;
  double area_ = 0;
  std::map<double, double> steps_;
};

/// Finds the dominated points among distinct points in lexicographic order. In this order only an
/// earlier point can dominate a point; it does if it is at most the point in every objective but
/// the first (Kung, Luccio and Preparata 1975).
class Sieve {
public:
  explicit Sieve(const std::vector<Point>& points)
      : points_(points), dominated_(points.size(), false) {}

  std::vector<bool> run() {
    if (points_.empty() || points_.front()[0] == points_.back()[0])
      sweep();
    else
      divide(0, points_.size());
    return std::move(dominated_);
  }

private:
  /// Handles points that share the first objective: they are ordered by the second one.
  void sweep() {
    Staircase stairs;
    for (std::size_t i = 0; i < points_.size(); ++i) {
      const Point& at = points_[i];
      dominated_[i] = stairs.covers(at[2], at[3]);
      stairs.add(at[2], at[3]);
    }
  }

  /// Marks points of [begin, end) that other points of the range dominate; recursion depth log2 of
  /// their number.
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
    // Points with equal second objective keep their order, so points of the first half are added
    // first.
    std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
      const double x = points_[a][1];
      const double y = points_[b][1];
      return x != y ? x < y : a < b;
    });
    Staircase stairs;
    for (const std::size_t i : order) {
      const Point& at = points_[i];
      if (i < middle)
        stairs.add(at[2], at[3]);
      else
        dominated_[i] = stairs.covers(at[2], at[3]);
    }
  }

  const std::vector<Point>& points_;
  std::vector<bool> dominated_;
};

/// Volume dominated by points ordered by objective `count - 1`, in the first `count` objectives.
double volume(std::span<const Point> points, std::span<const double> reference, std::size_t count) {
  if (count == 1) {
    double least = reference[0];
    for (const Point& point : points)
      least = std::min(least, point[0]);
    return reference[0] - least;
  }
  double sum = 0;
  if (count <= 3) {
    Staircase front(reference[0], reference[1]);
    for (std::size_t i = 0; i < points.size(); ++i) {
      front.add(points[i][0], points[i][1]);
      if (count == 2)
        continue;
      const double next = i + 1 < points.size() ? points[i + 1][2] : reference[2];
      sum += front.area() * (next - points[i][2]);
    }
    return count == 3 ? sum : front.area();
  }
  // Slices along the last objective: a slice's volume is that of all points up to it.
  std::vector<Point> seen;
  for (std::size_t i = 0; i < points.size(); ++i) {
    const auto at = std::upper_bound(seen.begin(), seen.end(), points[i],
                                     [](const Point& a, const Point& b) { return a[2] < b[2]; });
    seen.insert(at, points[i]);
    const double next = i + 1 < points.size() ? points[i + 1][3] : reference[3];
    if (next > points[i][3])
      sum += volume(seen, reference, 3) * (next - points[i][3]);
  }
  return sum;
}

} // namespace

bool dominates(std::span<const double> a, std::span<const double> b) {
  bool better = false;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (a[i] > b[i])
      return false;
    better = better || a[i] < b[i];
  }
  return better;
}

std::vector<std::size_t> non_dominated(std::span<const Objectives> points, Equals equals) {
  struct Indexed {
    Point at{}; // unused objectives stay 0
    std::size_t index = 0;
  };
  std::vector<Indexed> ordered(points.size());
  for (std::size_t i = 0; i < points.size(); ++i) {
    const Objectives& point = points[i];
    internal_check(!point.empty() && point.size() <= kMaxObjectives &&
                       std::none_of(point.begin(), point.end(),
                                    [](double value) { return std::isnan(value); }),
                   "a point of no or too many objectives, or of one that is no number");
    std::copy_backward(point.begin(), point.end(), ordered[i].at.end());
    ordered[i].index = i;
  }
  std::sort(ordered.begin(), ordered.end(), [](const Indexed& a, const Indexed& b) {
    return a.at != b.at ? a.at < b.at : a.index < b.index;
  });
  std::vector<Point> different;
  for (const Indexed& point : ordered) {
    if (different.empty() || different.back() != point.at)
      different.push_back(point.at);
  }
  const std::vector<bool> dominated = Sieve(different).run();
  std::vector<std::size_t> front;
  std::size_t group = 0;
  for (std::size_t i = 0; i < ordered.size(); ++i) {
    const bool first = i == 0 || ordered[i].at != ordered[i - 1].at;
    group += first && i > 0 ? 1 : 0;
    if (!dominated[group] && (first || equals == Equals::all))
      front.push_back(ordered[i].index);
  }
  return front;
}

double hypervolume(std::span<const Objectives> points, std::span<const double> reference) {
  const std::size_t count = reference.size();
  internal_check(count >= 1 && count <= kMaxObjectives, "hypervolume: one to four objectives");
  std::vector<Objectives> inside;
  for (const Objectives& point : points) {
    internal_check(point.size() == count,
                   "hypervolume: points and reference have the same number of objectives");
    bool below = true;
    for (std::size_t k = 0; k < count; ++k)
      below = below && point[k] < reference[k];
    if (below)
      inside.push_back(point);
  }
  std::vector<Point> ordered;
  for (const std::size_t i : non_dominated(inside)) {
    Point point{};
    std::copy(inside[i].begin(), inside[i].end(), point.begin());
    ordered.push_back(point);
  }
  std::stable_sort(ordered.begin(), ordered.end(),
                   [&](const Point& a, const Point& b) { return a[count - 1] < b[count - 1]; });
  return volume(ordered, reference, count);
}

} // namespace monet

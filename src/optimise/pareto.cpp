#include "monet/optimise/pareto.hpp"

#include "monet/base/errors.hpp"

#include <algorithm>
#include <array>
#include <numeric>

namespace monet {

namespace {

using Point = std::array<double, kMostObjectives>;

/// The area between a staircase and the reference, kept while steps come in.
class Staircase {
public:
  Staircase(double x, double y) : x_(x), y_(y) {}

  double area() const { return area_; }
  void add(double x, double y) {
    // Steps are ordered by rising x and falling y. Those at or behind x that are no lower go.
    auto first = std::lower_bound(steps_.begin(), steps_.end(), x,
                                  [](const Step& step, double value) { return step.x < value; });
    double roof = first == steps_.begin() ? y_ : std::prev(first)->y;
    if (roof <= y)
      return;
    auto last = first;
    double at = x;
    for (; last != steps_.end() && last->y >= y; ++last) {
      area_ += (last->x - at) * (roof - y);
      at = last->x;
      roof = last->y;
    }
    const double end = last == steps_.end() ? x_ : last->x;
    area_ += (end - at) * (roof - y);
    first = steps_.erase(first, last);
    steps_.insert(first, {x, y});
  }

private:
  struct Step {
    double x, y;
  };
  double x_, y_;
  double area_ = 0;
  std::vector<Step> steps_;
};

/// The volume of points ordered by objective `count - 1`, within the first `count` objectives.
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
  // Slices of the last objective: what is in one is there with everything before it.
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

std::vector<std::size_t> non_dominated(std::span<const Objectives> points) {
  std::vector<std::size_t> order(points.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return points[a] < points[b]; });
  // Whatever dominates a point stands before it.
  std::vector<std::size_t> front;
  for (const std::size_t i : order) {
    const auto covers = [&](std::size_t j) {
      return points[j] == points[i] || dominates(points[j], points[i]);
    };
    // Of two objectives the last one kept has the least second one.
    const bool covered = points[i].size() == 2 ? !front.empty() && covers(front.back())
                                               : std::any_of(front.begin(), front.end(), covers);
    if (!covered)
      front.push_back(i);
  }
  return front;
}

double hypervolume(std::span<const Objectives> points, std::span<const double> reference) {
  const std::size_t count = reference.size();
  internal_check(count >= 1 && count <= kMostObjectives, "hypervolume: one to four objectives");
  std::vector<Objectives> inside;
  for (const Objectives& point : points) {
    internal_check(point.size() == count, "hypervolume: as many objectives as the reference has");
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

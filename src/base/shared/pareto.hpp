// Pareto fronts of solutions with several objectives, all minimised.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

namespace monet {

/// One number per objective, at most kMaxObjectives.
using Objectives = std::vector<double>;

inline constexpr std::size_t kMaxObjectives = 4;

/// Whether `a` dominates `b`: no objective is worse and at least one is better.
bool dominates(std::span<const double> a, std::span<const double> b);

enum class Equals { first, all };
/// Indices of the points that no other point dominates, in lexicographic order of the points;
/// `equals` selects the first or all of equal points. O(n log n), O(n log^2 n) for four objectives.
/// Throws InternalError for more than kMaxObjectives and for NaN.
std::vector<std::size_t> non_dominated(std::span<const Objectives> points,
                                       Equals equals = Equals::first);
/// Items whose points are non-dominated, in their original order.
template <class Item, class PointOf>
std::vector<Item> non_dominated_items(std::span<const Item> items, const PointOf& point_of) {
  std::vector<Objectives> points;
  for (const Item& item : items)
    points.push_back(point_of(item));
  std::vector<std::size_t> kept = non_dominated(points);
  std::sort(kept.begin(), kept.end());
  std::vector<Item> front;
  for (const std::size_t i : kept)
    front.push_back(items[i]);
  return front;
}

/// Volume that the points dominate, up to the reference point; points not below it in every
/// objective add nothing. Exact for one to four objectives: O(n log n) for two, O(n^2) for three,
/// O(n^3) at worst for four. Throws InternalError for more.
double hypervolume(std::span<const Objectives> points, std::span<const double> reference);

} // namespace monet

// Fronts of solutions with several objectives, all minimised.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace monet {

/// One number per objective, at most kMostObjectives.
using Objectives = std::vector<double>;

inline constexpr std::size_t kMostObjectives = 4;

/// No objective is worse, one is better.
bool dominates(std::span<const double> a, std::span<const double> b);

/// Indices of the points that no other dominates, of equal points the first; in lexicographic
/// order of the points.
std::vector<std::size_t> non_dominated(std::span<const Objectives> points);

/// The volume that the points dominate, up to the reference point; those that are not below it in
/// every objective add nothing. Exact, for one to four objectives: O(n log n) for two, O(n^2) for
/// three, O(n^3) for four at worst. InternalError for more.
double hypervolume(std::span<const Objectives> points, std::span<const double> reference);

} // namespace monet

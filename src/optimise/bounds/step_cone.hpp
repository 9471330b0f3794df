// What must have run before an element of a tensor is there, and what cannot run before: the two
// cones of a step's dependencies, element by element, from below. Whatever is in a cone is there
// for every tiling, fusion, allocation and order; what is not may be there all the same.
#pragma once

#include "monet/workload/graph.hpp"

#include <vector>

namespace monet {

/// Boxes; empty vector: nothing that is certain. (A scalar's box is one interval [0, 1).)
struct StepCone {
  /// Per operator: loops. Each value of a loop in its interval belongs to some iteration of the
  /// cone.
  std::vector<std::vector<Interval>> loops;
  std::vector<char> exact;        ///< all iterations of the box do, but for those in padding
  std::vector<double> iterations; ///< so many do for certain
  /// Per tensor: elements, all of which belong to the cone.
  std::vector<std::vector<Interval>> elements;
};

/// The middle element of the operator's first output: the iterations that must have ended, and the
/// elements that must have been made or read, when it is there.
StepCone needed_by(const Graph& graph, OpId op);
/// The iterations that cannot start before it is there, and the elements made by them.
StepCone depending_on(const Graph& graph, OpId op);

/// Elements that the cone's iterations of an operator certainly read: a box, empty when unknown (an
/// index that is data).
std::vector<Interval> certain_reads(const Graph& graph, const StepCone& cone, OpId op,
                                    const Access& access);

/// The same of iterations that belong to both cones.
std::vector<Interval> certain_reads(const Graph& graph, const StepCone& a, const StepCone& b,
                                    OpId op, const Access& access);

/// Volume of a box as StepCone has them; 0 for an empty one.
double certain_volume(const std::vector<Interval>& box);
/// What both boxes have; empty when that is nothing.
std::vector<Interval> common(const std::vector<Interval>& a, const std::vector<Interval>& b);

/// Iterations of the box whose products fall into every output that scatters (others are padding,
/// which some forms of an operator never compute).
double landing_iterations(const Graph& graph, const Operator& op, const std::vector<Interval>& box);

} // namespace monet

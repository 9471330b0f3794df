// Lower bounds on the two dependency cones of an element of a step: iterations that must have run
// before it exists, and iterations that cannot run before. Members are certain for every tiling,
// fusion, allocation and order. Non-members are undecided.
#pragma once

#include "monet/workload/graph.hpp"

#include <vector>

namespace monet {

/// Cone as boxes. An empty vector means that nothing is certain (a scalar's box is one interval [0,
/// 1)).
struct StepCone {
  /// Loop intervals per operator. Each value of a loop in its interval belongs to some iteration of
  /// the cone.
  std::vector<std::vector<Interval>> loops;
  std::vector<char> exact;        ///< whether all iterations of the box but padding belong
  std::vector<double> iterations; ///< number of iterations that certainly belong
                                  /// Elements per tensor, all of which belong to the cone.
  std::vector<std::vector<Interval>> elements;
};

/// Cone before the middle element of the operator's first output: iterations that must have ended,
/// and elements that must have been made or read, when it exists.
StepCone needed_by(const Graph& graph, OpId op);
/// Cone after that middle element: iterations that cannot start before it exists, and the elements
/// they make.
StepCone depending_on(const Graph& graph, OpId op);

/// Box of elements that the cone's iterations of an operator certainly read; empty if unknown (a
/// data-dependent index).
std::vector<Interval> certain_reads(const Graph& graph, const StepCone& cone, OpId op,
                                    const Access& access);

/// Box of elements that iterations in both cones certainly read.
std::vector<Interval> certain_reads(const Graph& graph, const StepCone& a, const StepCone& b,
                                    OpId op, const Access& access);

/// Volume of a box of a StepCone; 0 for an empty one.
double certain_volume(const std::vector<Interval>& box);
/// Intersection of two boxes; empty if they are disjoint.
std::vector<Interval> common(const std::vector<Interval>& a, const std::vector<Interval>& b);

/// Number of iterations of the box whose products fall into every output that scatters. Other
/// iterations are padding, which some forms of an operator never compute.
double landing_iterations(const Graph& graph, const Operator& op, const std::vector<Interval>& box);

} // namespace monet

// Dependency cones of single elements in a step, as boxes of certain iterations and elements;
// step_bounds() places separators with them.
#include "optimise/bounds/step_cone.hpp"

#include <algorithm>
#include <cstdlib>
#include <utility>

namespace monet {

namespace {

using Loops = std::vector<Interval>;

Interval whole(std::int64_t extent) {
  return {0, extent};
}

Loops all_elements(const Tensor& tensor) {
  Loops all;
  for (const std::int64_t extent : tensor.shape)
    all.push_back(whole(extent));
  return all.empty() ? Loops{{0, 1}} : all;
}

/// Minimum and maximum of the sum of all terms except `skip` over the box, without the offset.
Interval range_without(const AxisExpr& axis, const Loops& box, std::size_t skip) {
  std::int64_t low = 0;
  std::int64_t high = 0;
  for (std::size_t t = 0; t < axis.terms.size(); ++t) {
    if (t == skip)
      continue;
    const Interval loop = box[axis.terms[t].dim];
    const std::int64_t c = axis.terms[t].coefficient;
    low += std::min(c * loop.begin, c * (loop.end - 1));
    high += std::max(c * loop.begin, c * (loop.end - 1));
  }
  return {low, high + 1};
}

/// Maximum distance of neighbouring values of the sum of all terms except `skip`.
std::int64_t widest_step(const AxisExpr& axis, const Loops& box, std::size_t skip) {
  std::int64_t widest = 1;
  for (std::size_t t = 0; t < axis.terms.size(); ++t)
    if (t != skip && box[axis.terms[t].dim].size() > 1)
      widest = std::max(widest, std::abs(axis.terms[t].coefficient));
  return widest;
}

std::int64_t floor_divide(std::int64_t a, std::int64_t b) {
  return a / b - ((a % b != 0 && (a < 0) != (b < 0)) ? 1 : 0);
}

/// Interval of loop values l with low <= coefficient * l <= high.
Interval solve(std::int64_t coefficient, std::int64_t low, std::int64_t high) {
  if (coefficient < 0)
    return solve(-coefficient, -high, -low);
  if (coefficient == 0)
    return {0, 0};
  return {-floor_divide(-low, coefficient), floor_divide(high, coefficient) + 1};
}

/// Whether the axis assumes every value between its minimum and maximum.
bool gapless(const AxisExpr& axis, const Loops& box) {
  std::vector<std::pair<std::int64_t, std::int64_t>> steps;
  for (const AffineTerm& term : axis.terms)
    if (box[term.dim].size() > 1)
      steps.emplace_back(std::abs(term.coefficient), box[term.dim].size());
  std::ranges::sort(steps);
  std::int64_t span = 1;
  for (const auto& [step, size] : steps) {
    if (step > span)
      return false;
    span += step * (size - 1);
  }
  return true;
}

bool loops_apart(const Access& access, const Loops& box) {
  std::vector<int> uses(box.size());
  for (const AxisExpr& axis : access.axes)
    for (const AffineTerm& term : axis.terms)
      if (box[term.dim].size() > 1 && ++uses[term.dim] > 1)
        return false;
  return true;
}

/// Iterations of a cone, see StepCone; `exact` if every iteration of the box is in it.
struct ConeBox {
  Loops box;
  bool exact = true;
};

/// A box of elements, all of which the iterations touch. `every_row`: a data-dependent index
/// depends on (or touches) the whole axis; otherwise it yields no certain elements.
Loops image(const Graph& graph, const Access& access, ConeBox iterations, bool every_row) {
  if (access.opaque)
    return all_elements(graph.tensor(access.tensor));
  const std::vector<std::int64_t>& shape = graph.tensor(access.tensor).shape;
  Loops& box = iterations.box;
  Loops elements;
  for (const AxisExpr& axis : access.axes)
    if (axis.terms.size() > 1 && !iterations.exact)
      return {};
  if (!loops_apart(access, box))
    for (Interval& loop : box)
      loop = {loop.begin, loop.begin + 1};
  for (std::size_t a = 0; a < shape.size(); ++a) {
    const AxisExpr& axis = access.axes[a];
    Interval range = axis_range(axis, box, shape[a]);
    if (axis.data_dependent && !every_row)
      return {};
    if (!axis.data_dependent && !gapless(axis, box)) {
      Loops first = box;
      for (const AffineTerm& term : axis.terms)
        first[term.dim] = {first[term.dim].begin, first[term.dim].begin + 1};
      range = axis_range(axis, first, shape[a]);
    }
    if (range.empty())
      return {};
    elements.push_back(range);
  }
  return elements.empty() ? Loops{{0, 1}} : elements;
}

/// Restricts an axis of two terms to one solution, so its loops become points. Returns false if
/// there is no solution.
bool pin(const AxisExpr& axis, Interval wanted, Loops& box) {
  if (axis.terms.size() != 2)
    return false;
  const AffineTerm& a = axis.terms[0];
  const AffineTerm& b = axis.terms[1];
  const Interval outer = box[b.dim];
  for (std::int64_t l = outer.begin; l < outer.end; ++l) {
    const std::int64_t rest = axis.offset + b.coefficient * l;
    const Interval found =
        intersect(solve(a.coefficient, wanted.begin - rest, wanted.end - 1 - rest), box[a.dim]);
    if (found.empty())
      continue;
    box[a.dim] = {found.begin, found.begin + 1};
    box[b.dim] = {l, l + 1};
    return true;
  }
  return false;
}

/// Restricts each loop of the axis to values for which some iteration lies in `wanted`.
bool constrain(const AxisExpr& axis, Interval wanted, Loops& box) {
  if (axis.data_dependent)
    return true;
  if (axis.terms.empty())
    return axis.offset >= wanted.begin && axis.offset < wanted.end;
  Loops result = box;
  for (std::size_t t = 0; t < axis.terms.size(); ++t) {
    if (axis.terms.size() > 1 && wanted.size() < widest_step(axis, box, t))
      return pin(axis, wanted, box);
    const Interval rest = range_without(axis, box, t);
    const std::int64_t low = wanted.begin - axis.offset - (rest.end - 1);
    const std::int64_t high = wanted.end - 1 - axis.offset - rest.begin;
    const AffineTerm& term = axis.terms[t];
    result[term.dim] = intersect(solve(term.coefficient, low, high), result[term.dim]);
    if (result[term.dim].empty())
      return false;
  }
  box = std::move(result);
  return true;
}

/// Iterations that touch elements of the box; empty if no iteration is certain to.
ConeBox preimage(const Graph& graph, const Operator& op, const Access& access,
                 const Loops& elements) {
  ConeBox reached{full_tile(op.nest), true};
  if (reached.box.empty())
    reached.box.push_back({0, 1}); // a nest without loops has one iteration
  if (access.opaque)
    return reached;
  if (!loops_apart(access, reached.box))
    return {}; // a loop in two axes: their constraints cannot be separated
  const std::vector<std::int64_t>& shape = graph.tensor(access.tensor).shape;
  for (std::size_t a = 0; a < shape.size(); ++a) {
    if (!constrain(access.axes[a], elements[a], reached.box))
      return {};
    if (access.axes[a].terms.size() > 1 && elements[a] != whole(shape[a]))
      reached.exact = false;
  }
  return reached;
}

void keep_larger(Loops& kept, Loops other) {
  if (certain_volume(other) > certain_volume(kept))
    kept = std::move(other);
}

Interval middle(Interval loop) {
  const std::int64_t at = loop.begin + loop.size() / 2;
  return {at, at + 1};
}

/// Extends loops to their full range if no result is final before all their iterations have run.
void widen_coupled(const LoopNest& nest, Loops& box) {
  for (std::size_t d = 0; d < nest.dims.size(); ++d)
    if (nest.dims[d].coupled)
      box[d] = whole(nest.dims[d].size);
}

/// Share of iterations of the axis' loops whose value lies in `wanted`.
double landing_share(const AxisExpr& axis, Interval wanted, const Loops& box) {
  double all = 1;
  for (const AffineTerm& term : axis.terms)
    all *= static_cast<double>(box[term.dim].size());
  if (axis.terms.empty() || all == 0)
    return 1;
  if (axis.terms.size() > 2)
    return 1 / all;
  const AffineTerm& a = axis.terms[0];
  const Interval outer = axis.terms.size() == 2 ? box[axis.terms[1].dim] : Interval{0, 1};
  const std::int64_t step = axis.terms.size() == 2 ? axis.terms[1].coefficient : 0;
  std::int64_t inside = 0;
  for (std::int64_t l = outer.begin; l < outer.end; ++l) {
    const std::int64_t rest = axis.offset + step * l;
    inside +=
        intersect(solve(a.coefficient, wanted.begin - rest, wanted.end - 1 - rest), box[a.dim])
            .size();
  }
  return static_cast<double>(inside) / all;
}

/// Number of iterations of the box that certainly touch `elements` of the operand.
double landing(const Access& access, const Loops& elements, const Loops& box) {
  double count = certain_volume(box);
  if (access.opaque)
    return count;
  if (!loops_apart(access, box))
    return std::min(count, 1.0);
  for (std::size_t a = 0; a < access.axes.size() && a < elements.size(); ++a)
    if (!access.axes[a].data_dependent && access.axes[a].terms.size() > 1)
      count *= landing_share(access.axes[a], elements[a], box);
  return count;
}

/// Cone that holds only the middle element of the operator's first output.
StepCone cone_of_middle(const Graph& graph, OpId op) {
  StepCone cone;
  cone.loops.resize(graph.operators().size());
  cone.exact.resize(graph.operators().size(), 1);
  cone.iterations.resize(graph.operators().size(), 0);
  cone.elements.resize(graph.tensors().size());
  const TensorId made = graph.op(op).nest.operands.front().tensor;
  Loops element = all_elements(graph.tensor(made));
  for (Interval& axis : element)
    axis = middle(axis);
  cone.elements[made.index()] = std::move(element);
  return cone;
}

} // namespace

double certain_volume(const std::vector<Interval>& box) {
  double volume = box.empty() ? 0 : 1;
  for (const Interval& interval : box)
    volume *= static_cast<double>(interval.size());
  return volume;
}

std::vector<Interval> common(const std::vector<Interval>& a, const std::vector<Interval>& b) {
  if (a.empty() || b.empty())
    return {};
  Loops both(a.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    both[i] = intersect(a[i], b[i]);
    if (both[i].empty())
      return {};
  }
  return both;
}

std::vector<Interval> certain_reads(const Graph& graph, const StepCone& cone, OpId op,
                                    const Access& access) {
  const Loops& loops = cone.loops[op.index()];
  return loops.empty() ? Loops{}
                       : image(graph, access, {loops, cone.exact[op.index()] != 0}, false);
}

std::vector<Interval> certain_reads(const Graph& graph, const StepCone& a, const StepCone& b,
                                    OpId op, const Access& access) {
  const std::size_t o = op.index();
  Loops both = common(a.loops[o], b.loops[o]);
  if (both.empty())
    return {};
  const bool exact = a.exact[o] != 0 && b.exact[o] != 0;
  // In an inexact box, each loop value occurs in some iteration, but a sub-box may hold none.
  if (!exact && both != (a.exact[o] != 0 ? b.loops[o] : a.loops[o]))
    return {};
  if (a.exact[o] == 0 && b.exact[o] == 0)
    return {};
  return image(graph, access, {std::move(both), exact}, false);
}

double landing_iterations(const Graph& graph, const Operator& op,
                          const std::vector<Interval>& box) {
  double least = certain_volume(box);
  for (const Access& access : op.nest.operands) {
    if (access.mode == AccessMode::read)
      continue;
    least = std::min(least, landing(access, all_elements(graph.tensor(access.tensor)), box));
  }
  return least;
}

StepCone needed_by(const Graph& graph, OpId last) {
  StepCone cone = cone_of_middle(graph, last);
  for (std::size_t o = last.index() + 1; o-- > 0;) {
    const Operator& op = graph.operators()[o];
    Loops& loops = cone.loops[o];
    for (const Access& access : op.nest.operands) {
      const Loops& wanted = cone.elements[access.tensor.index()];
      if (access.mode == AccessMode::read || wanted.empty())
        continue;
      ConeBox reached = preimage(graph, op, access, wanted);
      if (reached.box.empty())
        continue;
      // Reads needed for one element: a coupled loop must run to its end first.
      widen_coupled(op.nest, reached.box);
      const double count = landing(access, wanted, reached.box);
      if (certain_volume(reached.box) <= certain_volume(loops))
        continue;
      loops = std::move(reached.box);
      cone.exact[o] = reached.exact ? 1 : 0;
      cone.iterations[o] = count;
    }
    if (loops.empty())
      continue;
    for (const Access& access : op.nest.operands)
      if (access.mode == AccessMode::read)
        keep_larger(cone.elements[access.tensor.index()],
                    image(graph, access, {loops, cone.exact[o] != 0}, true));
  }
  return cone;
}

StepCone depending_on(const Graph& graph, OpId first) {
  StepCone cone = cone_of_middle(graph, first);
  for (std::size_t o = first.index() + 1; o < graph.operators().size(); ++o) {
    const Operator& op = graph.operators()[o];
    Loops& loops = cone.loops[o];
    for (const Access& access : op.nest.operands) {
      const Loops& there = cone.elements[access.tensor.index()];
      if (access.mode != AccessMode::read || there.empty())
        continue;
      ConeBox reached = preimage(graph, op, access, there);
      if (certain_volume(reached.box) <= certain_volume(loops))
        continue;
      cone.iterations[o] = landing(access, there, reached.box);
      cone.exact[o] = reached.exact ? 1 : 0;
      loops = std::move(reached.box);
    }
    if (loops.empty())
      continue;
    ConeBox reach{loops, cone.exact[o] != 0};
    widen_coupled(op.nest, reach.box);
    for (const Access& access : op.nest.operands)
      if (access.mode != AccessMode::read)
        keep_larger(cone.elements[access.tensor.index()], image(graph, access, reach, true));
  }
  return cone;
}

} // namespace monet

// Recognises scattering products and rewrites them in gather or decomposed form; input_gradient.cpp
// costs the forms.
#include "core_cost/input_gradient/transposed.hpp"

#include "base/shared/checked.hpp"

#include "monet/base/interval.hpp"

#include <algorithm>
#include <numeric>

namespace monet::core_cost_detail {

namespace {

/// Number of axes of the operand with a loop, and the last of them.
struct Uses {
  std::size_t count = 0;
  std::size_t axis = 0;
};

Uses uses_of(const ProblemOperand& operand, std::uint32_t dim) {
  Uses uses;
  for (std::size_t a = 0; a < operand.axes.size(); ++a) {
    for (const AffineTerm& term : operand.axes[a].terms) {
      if (term.dim == dim)
        uses = {uses.count + 1, a};
    }
  }
  return uses;
}

/// Axis of the operand with only this loop, counted from its first iteration, if there is one.
std::optional<std::size_t> alone_on_axis(const CoreProblem& problem, std::size_t operand,
                                         std::uint32_t dim) {
  const ProblemOperand& o = problem.operands[operand];
  const Uses uses = uses_of(o, dim);
  if (o.opaque || uses.count != 1)
    return {};
  const AxisExpr& axis = o.axes[uses.axis];
  const bool plain = axis.terms.size() == 1 && axis.terms[0].coefficient == 1 && axis.offset == 0 &&
                     !axis.data_dependent && o.extents[uses.axis] == problem.dims[dim].size;
  return plain ? std::optional(uses.axis) : std::nullopt;
}

/// Finds the two inputs that share the loops of the output's axes: dY in the memory of activations,
/// or the first if both have one kind of memory.
bool find_inputs(const CoreProblem& problem, Transposed& transposed) {
  std::vector<std::size_t> inputs;
  for (std::size_t i = 0; i < problem.operands.size(); ++i) {
    if (problem.operands[i].mode == AccessMode::read)
      inputs.push_back(i);
    else
      transposed.output = i;
  }
  if (inputs.size() != 2 || problem.operands.size() != 3)
    return false;
  const bool second = problem.operands[inputs[1]].memory == MemoryOperand::I1 &&
                      problem.operands[inputs[0]].memory != MemoryOperand::I1;
  transposed.gradient = inputs[second ? 1 : 0];
  transposed.weight = inputs[second ? 0 : 1];
  return true;
}

/// Reads `a` as one axis of a scatter. Its loops must be alone on other axes.
std::optional<TransposedAxis> read_axis(const CoreProblem& problem, const Transposed& transposed,
                                        std::size_t a) {
  const ProblemOperand& output = problem.operands[transposed.output];
  const AxisExpr& expr = output.axes[a];
  if (expr.terms.size() != 2 || expr.data_dependent)
    return {};
  for (const std::size_t position : {std::size_t{0}, std::size_t{1}}) {
    const AffineTerm& p = expr.terms[position];
    const AffineTerm& t = expr.terms[1 - position];
    const auto gradient_axis = alone_on_axis(problem, transposed.gradient, p.dim);
    const auto weight_axis = alone_on_axis(problem, transposed.weight, t.dim);
    const bool independent = uses_of(problem.operands[transposed.gradient], t.dim).count == 0 &&
                             uses_of(problem.operands[transposed.weight], p.dim).count == 0 &&
                             uses_of(output, p.dim).count == 1 && uses_of(output, t.dim).count == 1;
    if (!gradient_axis || !weight_axis || !independent || p.coefficient < 1 || t.coefficient < 1)
      continue;
    TransposedAxis axis{a,     *gradient_axis, *weight_axis,  p.dim,
                        t.dim, p.coefficient,  t.coefficient, expr.offset};
    const std::int64_t span =
        checked_add(checked_multiply(axis.stride, problem.dims[p.dim].size - 1),
                    checked_multiply(axis.dilation, problem.dims[t.dim].size - 1));
    const Interval reached = intersect(
        {axis.offset, checked_add(checked_add(axis.offset, span), 1)}, {0, output.extents[a]});
    if (reached.empty())
      return {};
    axis.begin = reached.begin;
    axis.end = reached.end;
    return axis;
  }
  return {};
}

/// Sets a plain axis: the loop, from its first iteration.
void set_plain(ProblemOperand& operand, std::size_t axis, std::uint32_t dim, std::int64_t size) {
  operand.axes[axis] = {{{dim, 1}}, 0, false};
  operand.extents[axis] = size;
}

/// Sets an axis to position - dilation * tap + offset inside [0, extent), reduced to its reach.
/// Returns the begin of the reach, or nothing if it is empty.
std::optional<std::int64_t> set_sliding(CoreProblem& problem, std::size_t operand, std::size_t axis,
                                        const AxisExpr& expr, std::int64_t extent) {
  std::vector<Interval> all;
  all.reserve(problem.dims.size());
  for (const LoopDim& dim : problem.dims)
    all.push_back({0, dim.size});
  const Interval range = axis_range(expr, all, extent);
  if (range.empty())
    return {};
  AxisExpr moved = expr;
  moved.offset -= range.begin;
  problem.operands[operand].axes[axis] = std::move(moved);
  problem.operands[operand].extents[axis] = range.size();
  return range.begin;
}

AxisExpr sliding(const TransposedAxis& axis, std::int64_t dilation, std::int64_t offset) {
  AxisExpr expr{{{axis.position, 1}, {axis.tap, -dilation}}, offset, false};
  std::ranges::sort(expr.terms, {}, &AffineTerm::dim);
  return expr;
}

/// One residue class on one axis.
struct Class {
  std::int64_t residue = 0; ///< of the output element, from the axis' begin
  std::int64_t outputs = 0;
  std::int64_t first_tap = 0;
  std::int64_t taps = 0;
};

/// Classes that a tap meets. Taps of a class repeat every stride / gcd, so the first taps determine
/// all classes. Nothing if there are too many classes.
std::optional<std::vector<Class>> classes_of(const CoreProblem& problem,
                                             const TransposedAxis& axis) {
  const std::int64_t taps = problem.dims[axis.tap].size;
  const std::int64_t step = axis.stride / std::gcd(axis.stride, axis.dilation);
  const std::int64_t reached = axis.end - axis.begin;
  const std::int64_t firsts = std::min(taps, step);
  if (firsts > static_cast<std::int64_t>(kMaxSubConvolutions))
    return {};
  std::vector<Class> classes;
  for (std::int64_t f = 0; f < firsts; ++f) {
    std::int64_t residue = (axis.offset - axis.begin + f * axis.dilation) % axis.stride;
    residue += residue < 0 ? axis.stride : 0;
    if (residue < reached) {
      classes.push_back(
          {residue, (reached - residue - 1) / axis.stride + 1, f, (taps - f - 1) / step + 1});
    }
  }
  std::ranges::sort(classes, {}, &Class::residue);
  return classes;
}

/// Rewrites one axis of `sub` for one class. Returns false if no product of the class meets dY.
bool restrict_to(const CoreProblem& whole, const Transposed& transposed, const TransposedAxis& axis,
                 const Class& part, SubConvolution& sub) {
  const std::int64_t divisor = std::gcd(axis.stride, axis.dilation);
  CoreProblem& problem = sub.problem;
  problem.dims[axis.position].size = part.outputs;
  problem.dims[axis.tap].size = part.taps;
  set_plain(problem.operands[transposed.output], axis.output_axis, axis.position, part.outputs);
  set_plain(problem.operands[transposed.weight], axis.weight_axis, axis.tap, part.taps);
  const std::int64_t shift =
      (axis.begin + part.residue - axis.offset - axis.dilation * part.first_tap) / axis.stride;
  const auto first =
      set_sliding(problem, transposed.gradient, axis.gradient_axis,
                  sliding(axis, axis.dilation / divisor, shift), whole.dims[axis.position].size);
  if (!first)
    return false;
  sub.axes.push_back({axis.begin + part.residue, part.first_tap, axis.stride / divisor, *first});
  return true;
}

} // namespace

std::optional<Transposed> find_transposed(const CoreProblem& problem) {
  Transposed transposed;
  if (problem.compute != ComputeKind::mac || !find_inputs(problem, transposed))
    return {};
  const ProblemOperand& output = problem.operands[transposed.output];
  if (output.mode != AccessMode::accumulate || output.opaque)
    return {};
  bool scatters = false;
  for (std::size_t a = 0; a < output.axes.size(); ++a) {
    if (output.axes[a].terms.size() < 2)
      continue;
    const std::optional<TransposedAxis> axis = read_axis(problem, transposed, a);
    if (!axis)
      return {};
    const bool several = problem.dims[axis->position].size > 1;
    transposed.strided |= several && axis->stride > 1;
    scatters |= several && (axis->stride > 1 || problem.dims[axis->tap].size > 1);
    transposed.axes.push_back(*axis);
  }
  return scatters ? std::optional(std::move(transposed)) : std::nullopt;
}

CoreProblem zero_inserted(const CoreProblem& problem, const Transposed& transposed) {
  CoreProblem gather = problem;
  ProblemOperand& output = gather.operands[transposed.output];
  output.mode = AccessMode::write;
  for (const TransposedAxis& axis : transposed.axes) {
    const std::int64_t size = axis.end - axis.begin;
    const std::int64_t expanded = axis.stride * (problem.dims[axis.position].size - 1) + 1;
    gather.dims[axis.position].size = size;
    set_plain(output, axis.output_axis, axis.position, size);
    // Never empty: read_axis() has found an element of dX in the span of the products.
    set_sliding(gather, transposed.gradient, axis.gradient_axis,
                sliding(axis, axis.dilation, axis.begin - axis.offset), expanded);
  }
  return gather;
}

std::vector<SubConvolution> decompose(const CoreProblem& problem, const Transposed& transposed) {
  std::vector<std::vector<Class>> classes;
  std::size_t count = 1;
  for (const TransposedAxis& axis : transposed.axes) {
    std::optional<std::vector<Class>> found = classes_of(problem, axis);
    if (!found || count * found->size() > kMaxSubConvolutions)
      return {};
    count *= found->size();
    classes.push_back(std::move(*found));
  }
  std::vector<SubConvolution> subs;
  for (std::size_t i = 0; i < count; ++i) {
    SubConvolution sub{problem, {}};
    sub.problem.operands[transposed.output].mode = AccessMode::write;
    std::size_t rest = i;
    std::size_t block = count;
    bool meets = true;
    for (std::size_t a = 0; a < classes.size() && meets; ++a) {
      block /= classes[a].size();
      meets = restrict_to(problem, transposed, transposed.axes[a], classes[a][rest / block], sub);
      rest %= block;
    }
    if (meets)
      subs.push_back(std::move(sub));
  }
  return subs;
}

} // namespace monet::core_cost_detail

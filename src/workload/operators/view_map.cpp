// Composes views into access maps of operands; fold_views() in views.cpp calls it.
#include "workload/operators/view_map.hpp"

#include "base/shared/checked.hpp"
#include "workload/shared/operators.hpp"
#include "workload/shared/views.hpp"

#include <algorithm>
#include <array>
#include <numeric>

namespace monet {

namespace {

std::int64_t magnitude(std::int64_t value) {
  return value < 0 ? -value : value;
}

/// True if the index lies in [0, extent) over the whole nest, or depends on data.
bool stays_inside(const AxisExpr& axis, const LoopNest& nest, std::int64_t extent) {
  if (axis.data_dependent)
    return true;
  std::int64_t low = axis.offset;
  std::int64_t high = axis.offset;
  for (const AffineTerm& term : axis.terms) {
    const std::int64_t reach =
        checked_multiply(term.coefficient, std::max<std::int64_t>(nest.dims[term.dim].size - 1, 0));
    std::int64_t& end = reach < 0 ? low : high;
    end = checked_add(end, reach);
  }
  return low >= 0 && high < extent;
}

// --- reshape ---

/// Axes [begin, end) of T hold the same elements as axes [viewed_begin, viewed_end) of S.
struct Group {
  std::size_t viewed_begin, viewed_end, begin, end;
};

/// Finest partition of both shapes' axes into groups of equal products; nullopt for empty tensors.
std::optional<std::vector<Group>> group_axes(std::span<const std::int64_t> viewed,
                                             std::span<const std::int64_t> view) {
  std::vector<Group> groups;
  std::size_t i = 0;
  std::size_t j = 0;
  while (i < viewed.size() || j < view.size()) {
    Group group{i, i, j, j};
    std::int64_t left = i < viewed.size() ? viewed[i++] : 1;
    std::int64_t right = j < view.size() ? view[j++] : 1;
    while (left != right) {
      if (left == 0 || right == 0)
        return std::nullopt;
      if (left < right && i < viewed.size()) {
        left = checked_multiply(left, viewed[i++]);
      } else if (left > right && j < view.size()) {
        right = checked_multiply(right, view[j++]);
      } else {
        return std::nullopt;
      }
    }
    if (left == 0)
      return std::nullopt;
    group.viewed_end = i;
    group.end = j;
    groups.push_back(group);
  }
  return groups;
}

/// Only axis of [begin, end) larger than 1; nullopt if their number is not one.
std::optional<std::size_t> only_axis(std::span<const std::int64_t> shape, std::size_t begin,
                                     std::size_t end) {
  std::optional<std::size_t> only;
  for (std::size_t i = begin; i < end; ++i) {
    if (shape[i] == 1)
      continue;
    if (only)
      return std::nullopt;
    only = i;
  }
  return only;
}

/// Linear index expressed as digits of S's axes.
struct Digits {
  enum class Status { done, split, impossible };
  Status status = Status::impossible;
  std::vector<AxisExpr> axes;  ///< when done
  std::size_t dim = 0;         ///< when split: loop to split
  std::int64_t inner_size = 1; ///< when split: inner size
};

/// Finds axes with linear = sum(axes[k] * stride[k]) and every axis inside its size. Succeeds if
/// each term belongs to a single axis.
Digits to_digits(const AxisExpr& linear, const LoopNest& nest,
                 std::span<const std::int64_t> sizes) {
  Digits digits;
  const std::size_t count = sizes.size();
  Integers strides(count, 1);
  for (std::size_t k = count; k-- > 1;)
    strides[k - 1] = strides[k] * sizes[k];
  digits.axes.assign(count, AxisExpr{});
  for (const AffineTerm& term : linear.terms) {
    const std::int64_t size = nest.dims[term.dim].size;
    if (size <= 1)
      continue;
    // Selects the outermost axis whose stride divides the coefficient (the last one's is 1).
    std::size_t k = 0;
    while (k + 1 < count && (term.coefficient % strides[k] != 0 || sizes[k] == 1))
      ++k;
    const std::int64_t above = strides[k] * sizes[k];
    if (k > 0 && checked_multiply(magnitude(term.coefficient), size - 1) >= above) {
      digits.dim = term.dim;
      digits.inner_size = above / std::gcd(above, magnitude(term.coefficient));
      const bool divides =
          digits.inner_size > 1 && digits.inner_size < size && size % digits.inner_size == 0;
      digits.status = divides ? Digits::Status::split : Digits::Status::impossible;
      return digits;
    }
    digits.axes[k].terms.push_back({term.dim, term.coefficient / strides[k]});
  }
  std::int64_t rest = linear.offset;
  for (std::size_t k = 0; k < count; ++k) {
    digits.axes[k].offset = rest / strides[k];
    rest %= strides[k];
    if (!stays_inside(digits.axes[k], nest, sizes[k]))
      return digits;
  }
  digits.status = Digits::Status::done;
  return digits;
}

AxisExpr linear_index(const std::vector<AxisExpr>& axes, std::span<const std::int64_t> view,
                      const Group& group) {
  AxisExpr linear;
  std::int64_t stride = 1;
  std::vector<AffineTerm> terms;
  for (std::size_t i = group.end; i-- > group.begin;) {
    linear.offset = checked_add(linear.offset, checked_multiply(stride, axes[i].offset));
    for (const AffineTerm& term : axes[i].terms) {
      terms.push_back({term.dim, checked_multiply(stride, term.coefficient)});
    }
    stride = checked_multiply(stride, view[i]);
  }
  std::ranges::sort(terms, [](const AffineTerm& a, const AffineTerm& b) { return a.dim < b.dim; });
  for (const AffineTerm& term : terms) {
    if (!linear.terms.empty() && linear.terms.back().dim == term.dim) {
      linear.terms.back().coefficient += term.coefficient;
    } else {
      linear.terms.push_back(term);
    }
  }
  std::erase_if(linear.terms, [](const AffineTerm& term) { return term.coefficient == 0; });
  return linear;
}

/// S's axes of one group, or the loop of the nest that has to be split first.
Digits reshape_group(const LoopNest& nest, std::size_t operand, const Group& group,
                     std::span<const std::int64_t> viewed, std::span<const std::int64_t> view) {
  const std::vector<AxisExpr>& axes = nest.operands[operand].axes;
  for (std::size_t i = group.begin; i < group.end; ++i) {
    if (view[i] == 1 && !stays_inside(axes[i], nest, 1))
      return {};
  }
  const auto from = only_axis(view, group.begin, group.end);
  const auto to = only_axis(viewed, group.viewed_begin, group.viewed_end);
  const std::size_t count = group.viewed_end - group.viewed_begin;
  if (from && to) {
    Digits whole{Digits::Status::done, std::vector<AxisExpr>(count)};
    whole.axes[*to - group.viewed_begin] = axes[*from];
    return whole;
  }
  for (std::size_t i = group.begin; i < group.end; ++i) {
    if ((axes[i].data_dependent && view[i] != 1) || !stays_inside(axes[i], nest, view[i]))
      return {};
  }
  return to_digits(linear_index(axes, view, group), nest,
                   viewed.subspan(group.viewed_begin, count));
}

bool compose_reshape(LoopNest& nest, std::size_t operand, std::span<const std::int64_t> viewed,
                     std::span<const std::int64_t> view) {
  constexpr int kMaxSplits = 64;
  if (std::ranges::equal(viewed, view))
    return true;
  const auto groups = group_axes(viewed, view);
  for (int splits = 0; groups && splits <= kMaxSplits; ++splits) {
    std::vector<AxisExpr> axes;
    std::size_t done = 0;
    for (; done < groups->size(); ++done) {
      const Digits digits = reshape_group(nest, operand, (*groups)[done], viewed, view);
      if (digits.status == Digits::Status::impossible)
        return false;
      if (digits.status == Digits::Status::split) {
        split_loop(nest, digits.dim, digits.inner_size);
        break; // the other operands' terms have changed: restart
      }
      axes.insert(axes.end(), digits.axes.begin(), digits.axes.end());
    }
    if (done < groups->size())
      continue;
    nest.operands[operand].axes = std::move(axes);
    return true;
  }
  return false;
}

// --- the other views ---

bool compose_transpose(LoopNest& nest, std::size_t operand, const ViewStep& step) {
  const std::vector<AxisExpr> axes = nest.operands[operand].axes;
  if (step.perm.size() != axes.size())
    return false;
  for (std::size_t i = 0; i < axes.size(); ++i) {
    nest.operands[operand].axes[static_cast<std::size_t>(step.perm[i])] = axes[i];
  }
  return true;
}

bool compose_slice(LoopNest& nest, std::size_t operand, const ViewStep& step,
                   std::span<const std::int64_t> viewed, std::span<const std::int64_t> view) {
  std::vector<AxisExpr> axes = nest.operands[operand].axes;
  for (std::size_t i = 0; i < axes.size(); ++i) {
    if (step.starts[i] == 0 && step.steps[i] == 1 && viewed[i] == view[i])
      continue;
    if (axes[i].data_dependent || !stays_inside(axes[i], nest, view[i]))
      return false;
    for (AffineTerm& term : axes[i].terms) {
      term.coefficient = checked_multiply(term.coefficient, step.steps[i]);
    }
    axes[i].offset = checked_add(step.starts[i], checked_multiply(axes[i].offset, step.steps[i]));
  }
  nest.operands[operand].axes = std::move(axes);
  return true;
}

bool compose_expand(LoopNest& nest, std::size_t operand, std::span<const std::int64_t> viewed,
                    std::span<const std::int64_t> view) {
  const std::vector<AxisExpr>& axes = nest.operands[operand].axes;
  if (viewed.size() > axes.size())
    return false;
  const std::size_t skipped = axes.size() - viewed.size();
  std::vector<AxisExpr> result;
  for (std::size_t i = 0; i < axes.size(); ++i) {
    if (i >= skipped && viewed[i - skipped] == view[i]) {
      result.push_back(axes[i]);
      continue;
    }
    if (!stays_inside(axes[i], nest, view[i]))
      return false;
    if (i >= skipped)
      result.push_back(AxisExpr{});
  }
  nest.operands[operand].axes = std::move(result);
  return true;
}

bool compose(LoopNest& nest, std::size_t operand, const ViewStep& step,
             std::span<const std::int64_t> viewed, std::span<const std::int64_t> view) {
  switch (step.kind) {
  case ViewStep::Kind::reshape:
    return compose_reshape(nest, operand, viewed, view);
  case ViewStep::Kind::transpose:
    return compose_transpose(nest, operand, step);
  case ViewStep::Kind::slice:
    return compose_slice(nest, operand, step, viewed, view);
  case ViewStep::Kind::expand:
    return compose_expand(nest, operand, viewed, view);
  }
  return false;
}

} // namespace

void split_loop(LoopNest& nest, std::size_t dim, std::int64_t inner_size) {
  LoopDim outer = nest.dims[dim];
  outer.size /= inner_size;
  nest.dims[dim].size = inner_size;
  outer.name += "_outer";
  while (find_dim(nest, outer.name) != nest.dims.size())
    outer.name += "_outer";
  nest.dims.insert(nest.dims.begin() + static_cast<std::ptrdiff_t>(dim), outer);
  const auto split_at = static_cast<std::uint32_t>(dim);
  for (Access& access : nest.operands) {
    for (AxisExpr& axis : access.axes) {
      std::vector<AffineTerm> terms;
      for (AffineTerm term : axis.terms) {
        if (term.dim == split_at) {
          terms.push_back({split_at, checked_multiply(term.coefficient, inner_size)});
        }
        if (term.dim >= split_at)
          ++term.dim;
        terms.push_back(term);
      }
      axis.terms = std::move(terms);
    }
  }
}

bool compose_view(LoopNest& nest, std::size_t operand, const ViewStep& step,
                  std::span<const std::int64_t> viewed, std::span<const std::int64_t> view) {
  if (nest.operands[operand].opaque)
    return false; // accesses are unknown: the layout must be as declared
  // Only split loops change other operands, of which a concatenation may have thousands.
  LoopNest alone{nest.compute, nest.dims, {nest.operands[operand]}, nest.work};
  if (!compose(alone, 0, step, viewed, view))
    return false;
  if (alone.dims.size() == nest.dims.size()) {
    nest.operands[operand] = std::move(alone.operands[0]);
    return true;
  }
  LoopNest trial = nest;
  const bool done = compose(trial, operand, step, viewed, view);
  if (done)
    nest = std::move(trial);
  return done;
}

namespace {

/// Index of an axis, which counts from the last if it is negative; nullopt outside of the shape.
std::optional<std::size_t> axis_index(std::int64_t axis, std::size_t rank) {
  axis += axis < 0 ? static_cast<std::int64_t>(rank) : 0;
  const bool inside = axis >= 0 && axis < static_cast<std::int64_t>(rank);
  return inside ? std::optional(static_cast<std::size_t>(axis)) : std::nullopt;
}

std::optional<ViewStep> slice_step(const Graph& graph, const Operator& op) {
  const auto& shape = graph.tensor(*op.inputs[0]).shape;
  const auto starts = known_integers(graph, op, 1);
  if (!starts)
    return std::nullopt;
  const auto axes = known_integers(graph, op, 3);
  const auto steps = known_integers(graph, op, 4);
  const auto fits_starts = [&](std::size_t input, const auto& list) {
    const bool given = op.inputs.size() > input && op.inputs[input];
    return !given || (list && list->size() == starts->size());
  };
  if (!fits_starts(3, axes) || !fits_starts(4, steps))
    return std::nullopt;
  ViewStep step{ViewStep::Kind::slice, {}, Integers(shape.size(), 0), Integers(shape.size(), 1)};
  for (std::size_t i = 0; i < starts->size(); ++i) {
    const auto at = axis_index(axes ? (*axes)[i] : static_cast<std::int64_t>(i), shape.size());
    if (!at)
      return std::nullopt;
    step.steps[*at] = steps ? (*steps)[i] : 1;
    const std::int64_t last = step.steps[*at] > 0 ? shape[*at] : shape[*at] - 1;
    const std::int64_t start = (*starts)[i] < 0 ? (*starts)[i] + shape[*at] : (*starts)[i];
    step.starts[*at] = std::clamp<std::int64_t>(start, 0, std::max<std::int64_t>(last, 0));
  }
  return step;
}

/// View of Split's output k, which begins where the earlier outputs end.
std::optional<ViewStep> split_step(const Graph& graph, const Operator& op, std::size_t output) {
  const auto& shape = graph.tensor(*op.inputs[0]).shape;
  const auto at = axis_index(op.attributes.integer("axis", 0), shape.size());
  if (!at)
    return std::nullopt;
  const auto sizes = known_integers(graph, op, 1);
  ViewStep step{ViewStep::Kind::slice, {}, Integers(shape.size(), 0), Integers(shape.size(), 1)};
  for (std::size_t i = 0; i < output; ++i) {
    if (op.outputs[i]) {
      step.starts[*at] += graph.tensor(*op.outputs[i]).shape.at(*at);
    } else if (sizes && i < sizes->size()) {
      step.starts[*at] += (*sizes)[i];
    } else {
      return std::nullopt;
    }
  }
  return step;
}

constexpr std::array<OpType, 4> kStepNames{ops::Reshape, ops::Transpose, ops::Slice, ops::Expand};

std::optional<ViewStep> copied_step(const Operator& op) {
  const std::string view = op.attributes.text("view", ops::Reshape);
  const auto name = std::ranges::find(kStepNames, view);
  if (name == kStepNames.end())
    return std::nullopt;
  return ViewStep{static_cast<ViewStep::Kind>(name - kStepNames.begin()),
                  op.attributes.integers("perm"), op.attributes.integers("starts"),
                  op.attributes.integers("steps")};
}

bool fits(const ViewStep& step, std::size_t rank) {
  if (step.kind == ViewStep::Kind::slice) {
    return step.starts.size() == rank && step.steps.size() == rank;
  }
  if (step.kind != ViewStep::Kind::transpose)
    return true;
  Integers axes(rank);
  std::iota(axes.begin(), axes.end(), 0);
  return std::ranges::is_permutation(step.perm, axes);
}

} // namespace

bool is_view(const Graph& graph, const Operator& op) {
  if (op.inputs.empty() || !op.inputs[0])
    return false;
  if (op.domain.empty() && op.op_type == ops::Cast) {
    return !op.outputs.empty() && op.outputs[0] &&
           graph.tensor(*op.inputs[0]).type == graph.tensor(*op.outputs[0]).type;
  }
  return has_view_rule(op);
}

std::optional<ViewStep> view_step(const Graph& graph, const Operator& op, std::size_t output) {
  const std::size_t rank = graph.tensor(*op.inputs[0]).shape.size();
  std::optional<ViewStep> step = ViewStep{};
  if (op.op_type == ops::Copy && op.domain == kMonetDomain) {
    step = copied_step(op);
  } else if (op.op_type == ops::Transpose) {
    step->kind = ViewStep::Kind::transpose;
    step->perm = op.attributes.integers("perm");
    for (std::size_t i = rank; step->perm.size() < rank && i-- > 0;) {
      step->perm.push_back(static_cast<std::int64_t>(i));
    }
  } else if (op.op_type == ops::Slice) {
    step = slice_step(graph, op);
  } else if (op.op_type == ops::Split) {
    step = split_step(graph, op, output);
  } else if (op.op_type == ops::Expand) {
    step->kind = ViewStep::Kind::expand;
  }
  return step && fits(*step, rank) ? step : std::nullopt;
}

Attributes copy_attributes(const std::optional<ViewStep>& step) {
  Attributes attributes;
  if (!step) {
    attributes.set("view", std::string("unknown"));
    return attributes;
  }
  attributes.set("view", std::string(kStepNames[static_cast<std::size_t>(step->kind)]));
  for (const auto& [name, numbers] :
       {std::pair("perm", &step->perm), {"starts", &step->starts}, {"steps", &step->steps}}) {
    if (!numbers->empty())
      attributes.set(name, *numbers);
  }
  return attributes;
}

} // namespace monet

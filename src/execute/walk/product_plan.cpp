// One loop of the output becomes the vector loop: operands that have it are packed so that it is
// contiguous.
#include "execute/walk/product_plan.hpp"

namespace monet {

namespace {

/// The axis that is exactly this loop, if the loop is nowhere else in the access.
std::optional<std::size_t> lone_axis(const Access& access, std::size_t loop) {
  std::optional<std::size_t> found;
  for (std::size_t i = 0; i < access.axes.size(); ++i) {
    const AxisExpr& axis = access.axes[i];
    for (const AffineTerm& term : axis.terms) {
      if (term.dim != loop)
        continue;
      if (found || axis.terms.size() != 1 || term.coefficient != 1 || axis.offset != 0)
        return std::nullopt;
      found = i;
    }
  }
  return found;
}

bool uses(const Access& access, std::size_t loop) {
  for (const AxisExpr& axis : access.axes) {
    for (const AffineTerm& term : axis.terms) {
      if (term.dim == loop)
        return true;
    }
  }
  return false;
}

/// The operand never uses the loop, or all of it as one whole axis.
bool suits_vector_loop(const Graph& graph, const LoopNest& nest, const Access& access,
                       std::size_t loop) {
  if (!uses(access, loop))
    return true;
  const auto axis = lone_axis(access, loop);
  return axis && nest.dims[loop].size <= graph.tensor(access.tensor).shape[*axis];
}

/// Longest output loop that is exactly one axis of every operand, or absent from it.
std::optional<std::size_t> choose_vector_loop(const Graph& graph, const LoopNest& nest) {
  std::optional<std::size_t> best;
  for (std::size_t d = 0; d < nest.dims.size(); ++d) {
    bool fits = nest.dims[d].size > 1 && uses(nest.operands[0], d);
    for (std::size_t i = 0; i < 3 && fits; ++i)
      fits = suits_vector_loop(graph, nest, nest.operands[i], d);
    if (fits && (!best || nest.dims[d].size >= nest.dims[*best].size))
      best = d;
  }
  return best;
}

/// Strides of a tensor whose axis `last` is contiguous and whose other axes keep their order.
Integers packed_strides(std::span<const std::int64_t> shape, std::optional<std::size_t> last) {
  Integers strides = strides_of(shape);
  if (!last || strides.empty())
    return strides;
  std::int64_t stride = shape[*last];
  for (std::size_t i = shape.size(); i-- > 0;) {
    if (i == *last)
      continue;
    strides[i] = stride;
    stride *= shape[i];
  }
  strides[*last] = 1;
  return strides;
}

AxisParts parts_of(std::span<const std::int64_t> shape, std::size_t axis) {
  AxisParts parts;
  parts.along = shape[axis];
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (i != axis)
      (i < axis ? parts.before : parts.behind) *= shape[i];
  }
  return parts;
}

Strides strides_along(const ProductPlan& plan, std::optional<std::size_t> loop) {
  if (!loop)
    return {};
  return {plan.maps[0].strides[*loop], plan.maps[1].strides[*loop], plan.maps[2].strides[*loop]};
}

bool is_bounded(const ProductPlan& plan, std::size_t loop) {
  return std::ranges::any_of(plan.bounds,
                             [&](const AxisBound& bound) { return bound.coefficients[loop] != 0; });
}

/// True if different values of the loop access different elements of the output, for any values of
/// the other loops.
bool is_apart(const Access& output, std::size_t loop) {
  std::size_t uses_of = 0;
  bool alone = true;
  for (const AxisExpr& axis : output.axes) {
    for (const AffineTerm& term : axis.terms) {
      if (term.dim != loop || term.coefficient == 0)
        continue;
      ++uses_of;
      alone = alone && axis.terms.size() == 1;
    }
  }
  return uses_of == 1 && alone;
}

/// Relation of an outer loop to the output: its iterations write separate elements, may share
/// elements, or all add to the same ones.
enum class Part { unshared, shared, reduced };
Part part_of(const ProductPlan& plan, const LoopNest& nest, std::size_t loop) {
  if (plan.maps[0].strides[loop] == 0)
    return Part::reduced;
  return is_apart(nest.operands[0], loop) ? Part::unshared : Part::shared;
}

void choose_inner_loops(const LoopNest& nest, ProductPlan& plan) {
  const auto longer = [&](std::optional<std::size_t>& best, std::size_t d) {
    if (!best || nest.dims[d].size > nest.dims[*best].size)
      best = d;
  };
  for (std::size_t d = 0; d < nest.dims.size(); ++d) {
    if (d == plan.vector || nest.dims[d].size == 1)
      continue;
    const std::int64_t vector_operand = plan.maps[plan.left_is_vector ? 1 : 2].strides[d];
    if (plan.maps[0].strides[d] == 0) {
      if (!is_bounded(plan, d))
        longer(plan.reduced, d);
    } else if (vector_operand == 0) {
      longer(plan.row, d);
    }
  }
  const auto size = [&](std::optional<std::size_t> d) { return d ? nest.dims[*d].size : 1; };
  plan.vector_size = size(plan.vector);
  plan.row_size = size(plan.row);
  plan.reduced_size = size(plan.reduced);
  plan.by_row = strides_along(plan, plan.row);
  plan.by_reduced = strides_along(plan, plan.reduced);
  plan.rows_apart = !plan.row || is_apart(nest.operands[0], *plan.row);
  // Reduced loops inside, so that the output stays in cache.
  for (const Part part : {Part::unshared, Part::shared, Part::reduced}) {
    for (std::size_t d = 0; d < nest.dims.size(); ++d) {
      if (d == plan.vector || d == plan.row || d == plan.reduced || part_of(plan, nest, d) != part)
        continue;
      plan.outer.push_back(d);
      plan.outer_sizes.push_back(nest.dims[d].size);
    }
    if (part == Part::unshared)
      plan.apart_outer = plan.outer.size();
  }
}

/// Gathers strides and bounds of the outer loops into contiguous arrays.
void gather_outer_loops(ProductPlan& plan) {
  const auto of_outer = [&](const Integers& by_loop) {
    Integers result;
    for (const std::size_t loop : plan.outer)
      result.push_back(by_loop[loop]);
    return result;
  };
  for (std::size_t k = 0; k < plan.maps.size(); ++k)
    plan.outer_strides[k] = of_outer(plan.maps[k].strides);
  for (const AxisBound& bound : plan.bounds) {
    plan.outer_bounds.push_back({bound.offset, bound.extent,
                                 plan.row ? bound.coefficients[*plan.row] : 0,
                                 of_outer(bound.coefficients)});
  }
}

std::int64_t divide_up(std::int64_t a, std::int64_t b) { // b > 0
  return a >= 0 ? (a + b - 1) / b : -(-a / b);
}

} // namespace

std::int64_t max_products(const ProductPlan& plan) {
  std::int64_t most = plan.reduced_size * (plan.rows_apart ? 1 : plan.row_size);
  for (std::size_t d = plan.apart_outer; d < plan.outer_sizes.size(); ++d)
    most *= plan.outer_sizes[d];
  return most;
}

void clip_rows(const PlanBound& bound, std::span<const std::int64_t> point, std::int64_t& low,
               std::int64_t& high) {
  const std::int64_t base = bound.offset + weighted_sum(bound.by_outer, point);
  const std::int64_t step = bound.by_row;
  if (step == 0) {
    if (base < 0 || base >= bound.extent)
      high = low;
  } else if (step > 0) {
    low = std::max(low, divide_up(-base, step));
    high = std::min(high, divide_up(bound.extent - base, step));
  } else {
    low = std::max(low, divide_up(base - bound.extent + 1, -step));
    high = std::min(high, divide_up(base + 1, -step));
  }
}

ProductPlan plan_product(const Graph& graph, const LoopNest& nest) {
  ProductPlan plan;
  plan.vector = choose_vector_loop(graph, nest);
  for (std::size_t k = 0; k < 3; ++k) {
    const auto& shape = graph.tensor(nest.operands[k].tensor).shape;
    const auto last = plan.vector ? lone_axis(nest.operands[k], *plan.vector) : std::nullopt;
    plan.moved[k] = last && *last + 1 != shape.size();
    if (last)
      plan.packed[k] = parts_of(shape, *last);
    plan.maps[k] = map_operand(nest, nest.operands[k], shape, packed_strides(shape, last));
    for (const AxisBound& bound : plan.maps[k].bounds)
      plan.bounds.push_back(bound);
  }
  plan.left_is_vector = plan.vector && plan.maps[1].strides[*plan.vector] != 0;
  plan.right_is_vector = plan.vector && plan.maps[2].strides[*plan.vector] != 0;
  choose_inner_loops(nest, plan);
  gather_outer_loops(plan);
  return plan;
}

} // namespace monet

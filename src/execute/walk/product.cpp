// One loop of the output becomes the vector loop: operands that have it are packed so that it is
// contiguous. Inside, four rows by four reduced iterations are kept in registers.
#include "execute/walk/product.hpp"

#include "execute/walk/operand.hpp"

#include "monet/base/errors.hpp"
#include "monet/base/stop.hpp"

#include <algorithm>
#include <array>
#include <optional>

namespace monet {

namespace {

constexpr std::int64_t kVectorChunk =
    512; ///< elements of the vector loop at a time: four rows fit L1
constexpr std::int64_t kRows = 4;
constexpr std::int64_t kUnroll = 4;

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

/// The longest loop of the output that every operand has as an axis of its own, or not at all.
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
std::vector<std::int64_t> packed_strides(std::span<const std::int64_t> shape,
                                         std::optional<std::size_t> last) {
  std::vector<std::int64_t> strides = strides_of(shape);
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

/// Copies between row-major order and an order given by strides.
template <class Real, class F>
void for_each_packed(std::span<const std::int64_t> shape, std::span<const std::int64_t> strides,
                     F f) {
  std::vector<std::int64_t> place(shape.size(), 0);
  std::vector<std::int64_t> outer(shape.begin(), shape.end());
  const std::int64_t run = shape.empty() ? 1 : shape.back();
  if (!outer.empty())
    outer.back() = 1;
  std::size_t plain = 0;
  do {
    const std::int64_t packed = weighted_sum(strides, place);
    const std::int64_t step = strides.empty() ? 0 : strides.back();
    for (std::int64_t i = 0; i < run; ++i)
      f(plain++, static_cast<std::size_t>(packed + i * step));
  } while (next_point(place, outer));
}

struct Strides {
  std::int64_t output = 0;
  std::int64_t left = 0;
  std::int64_t right = 0;
};

/// A bound by the outer loops and the rows.
struct PlanBound {
  std::int64_t offset = 0;
  std::int64_t extent = 0;
  std::int64_t by_row = 0;
  std::vector<std::int64_t> by_outer;
};

/// The nest as four kinds of loops: outer ones, rows, reduced ones, and the vector loop.
struct Plan {
  std::array<OperandMap, 3> maps;
  std::vector<AxisBound> bounds;
  std::vector<std::size_t> outer;
  std::vector<std::int64_t> outer_sizes;
  std::array<std::vector<std::int64_t>, 3> outer_strides;
  std::vector<PlanBound> outer_bounds;
  std::optional<std::size_t> vector;
  std::optional<std::size_t> row;
  std::optional<std::size_t> reduced;
  std::int64_t vector_size = 1;
  std::int64_t row_size = 1;
  std::int64_t reduced_size = 1;
  Strides by_row;
  Strides by_reduced;
  bool left_is_vector = false;
  bool right_is_vector = false;
};

Strides strides_along(const Plan& plan, std::optional<std::size_t> loop) {
  if (!loop)
    return {};
  return {plan.maps[0].strides[*loop], plan.maps[1].strides[*loop], plan.maps[2].strides[*loop]};
}

bool is_bounded(const Plan& plan, std::size_t loop) {
  return std::any_of(plan.bounds.begin(), plan.bounds.end(),
                     [&](const AxisBound& bound) { return bound.coefficients[loop] != 0; });
}

void choose_inner_loops(const LoopNest& nest, Plan& plan) {
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
  // Reduced loops inside, so that the output stays in cache.
  for (const bool reduced : {false, true}) {
    for (std::size_t d = 0; d < nest.dims.size(); ++d) {
      if (d == plan.vector || d == plan.row || d == plan.reduced)
        continue;
      if ((plan.maps[0].strides[d] == 0) != reduced)
        continue;
      plan.outer.push_back(d);
      plan.outer_sizes.push_back(nest.dims[d].size);
    }
  }
}

/// What is known of each outer loop, side by side.
void gather_outer_loops(Plan& plan) {
  const auto of_outer = [&](const std::vector<std::int64_t>& by_loop) {
    std::vector<std::int64_t> result;
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

template <class Real>
using Pointers = std::array<Real*, kRows>;

/// rows x reduced x vector: output rows += scalars * vectors.
template <class Real, int kRowCount>
void multiply_rows(const Plan& plan, Real* output, const Real* scalars, const Real* vectors,
                   const Strides& row, const Strides& reduced, std::int64_t chunk) {
  std::int64_t r = 0;
  for (; r + kUnroll <= plan.reduced_size; r += kUnroll) {
    Real a[kRowCount][kUnroll];
    for (int j = 0; j < kRowCount; ++j) {
      for (std::int64_t q = 0; q < kUnroll; ++q)
        a[j][q] = scalars[j * row.left + (r + q) * reduced.left];
    }
    const Real* b0 = vectors + r * reduced.right;
    const Real* b1 = b0 + reduced.right;
    const Real* b2 = b1 + reduced.right;
    const Real* b3 = b2 + reduced.right;
    for (int j = 0; j < kRowCount; ++j) {
      Real* __restrict out = output + j * row.output;
      for (std::int64_t v = 0; v < chunk; ++v) {
        out[v] =
            (((out[v] + a[j][0] * b0[v]) + a[j][1] * b1[v]) + a[j][2] * b2[v]) + a[j][3] * b3[v];
      }
    }
  }
  for (; r < plan.reduced_size; ++r) {
    const Real* b = vectors + r * reduced.right;
    for (int j = 0; j < kRowCount; ++j) {
      Real* __restrict out = output + j * row.output;
      const Real a = scalars[j * row.left + r * reduced.left];
      for (std::int64_t v = 0; v < chunk; ++v)
        out[v] += a * b[v];
    }
  }
}

template <class Real>
struct Operands {
  Real* output;
  const Real* left;
  const Real* right;
};

/// Both factors have the vector loop (depth-wise convolutions), or neither.
template <class Real>
void multiply_pairs(const Plan& plan, const Operands<Real>& at, std::int64_t low,
                    std::int64_t high) {
  const std::int64_t step = plan.left_is_vector ? 1 : 0;
  for (std::int64_t d = low; d < high; ++d) {
    check_stop();
    Real* __restrict out = at.output + d * plan.by_row.output;
    for (std::int64_t r = 0; r < plan.reduced_size; ++r) {
      const Real* a = at.left + d * plan.by_row.left + r * plan.by_reduced.left;
      const Real* b = at.right + d * plan.by_row.right + r * plan.by_reduced.right;
      for (std::int64_t v = 0; v < plan.vector_size; ++v)
        out[v] += a[v * step] * b[v * step];
    }
  }
}

template <class Real>
void multiply_block(const Plan& plan, const Operands<Real>& at, std::int64_t low,
                    std::int64_t high) {
  if (plan.left_is_vector == plan.right_is_vector) {
    multiply_pairs(plan, at, low, high);
    return;
  }
  Strides row = plan.by_row;
  Strides reduced = plan.by_reduced;
  const Real* scalars = at.left;
  const Real* vectors = at.right;
  if (plan.left_is_vector) {
    std::swap(row.left, row.right);
    std::swap(reduced.left, reduced.right);
    std::swap(scalars, vectors);
  }
  for (std::int64_t v = 0; v < plan.vector_size; v += kVectorChunk) {
    const std::int64_t chunk = std::min(kVectorChunk, plan.vector_size - v);
    std::int64_t d = low;
    for (; d + kRows <= high; d += kRows) {
      check_stop();
      multiply_rows<Real, kRows>(plan, at.output + d * row.output + v, scalars + d * row.left,
                                 vectors + v, row, reduced, chunk);
    }
    for (; d < high; ++d) {
      multiply_rows<Real, 1>(plan, at.output + d * row.output + v, scalars + d * row.left,
                             vectors + v, row, reduced, chunk);
    }
  }
}

std::int64_t divide_up(std::int64_t a, std::int64_t b) { // b > 0
  return a >= 0 ? (a + b - 1) / b : -(-a / b);
}

/// Rows [low, high) for which a bound holds at an outer point.
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

template <class Real>
void run_plan(const Plan& plan, const Operands<Real>& start) {
  std::vector<std::int64_t> point(plan.outer.size(), 0);
  do {
    check_stop();
    std::int64_t low = 0;
    std::int64_t high = plan.row_size;
    for (const PlanBound& bound : plan.outer_bounds)
      clip_rows(bound, point, low, high);
    if (low >= high)
      continue;
    std::array<std::int64_t, 3> at{};
    for (std::size_t k = 0; k < 3; ++k)
      at[k] = plan.maps[k].offset + weighted_sum(plan.outer_strides[k], point);
    multiply_block(plan,
                   Operands<Real>{start.output + at[0], start.left + at[1], start.right + at[2]},
                   low, high);
  } while (next_point(point, plan.outer_sizes));
}

} // namespace

template <class Real>
void multiply_accumulate(const Graph& graph, const LoopNest& nest, std::vector<Real>& output,
                         const std::vector<Real>& left, const std::vector<Real>& right) {
  if (iterations(nest) == 0 || output.empty())
    return;
  const std::array<std::size_t, 3> sizes{output.size(), left.size(), right.size()};
  for (std::size_t k = 0; k < sizes.size(); ++k)
    internal_check(static_cast<std::int64_t>(sizes[k]) ==
                       element_count(graph.tensor(nest.operands.at(k).tensor)),
                   "a factor or a product has not as many numbers as elements");
  Plan plan;
  plan.vector = choose_vector_loop(graph, nest);
  std::array<std::vector<std::int64_t>, 3> shapes;
  std::array<std::vector<std::int64_t>, 3> axis_strides;
  std::array<bool, 3> moved{};
  for (std::size_t k = 0; k < 3; ++k) {
    shapes[k] = graph.tensor(nest.operands[k].tensor).shape;
    const auto last = plan.vector ? lone_axis(nest.operands[k], *plan.vector) : std::nullopt;
    axis_strides[k] = packed_strides(shapes[k], last);
    moved[k] = last && *last + 1 != shapes[k].size();
    plan.maps[k] = map_operand(nest, nest.operands[k], shapes[k], axis_strides[k]);
    for (const AxisBound& bound : plan.maps[k].bounds)
      plan.bounds.push_back(bound);
  }
  plan.left_is_vector = plan.vector && plan.maps[1].strides[*plan.vector] != 0;
  plan.right_is_vector = plan.vector && plan.maps[2].strides[*plan.vector] != 0;
  choose_inner_loops(nest, plan);
  gather_outer_loops(plan);

  std::array<std::vector<Real>, 3> packed;
  const auto pack = [&](std::size_t k, const std::vector<Real>& plain) {
    if (!moved[k])
      return plain.data();
    packed[k].resize(plain.size());
    const Real* source = plain.data();
    Real* target = packed[k].data();
    for_each_packed<Real>(
        shapes[k], axis_strides[k],
        [source, target](std::size_t from, std::size_t to) { target[to] = source[from]; });
    return static_cast<const Real*>(target);
  };
  const Real* a = pack(1, left);
  const Real* b = pack(2, right);
  if (!moved[0]) {
    run_plan(plan, Operands<Real>{output.data(), a, b});
    return;
  }
  packed[0].assign(output.size(), Real{0});
  run_plan(plan, Operands<Real>{packed[0].data(), a, b});
  const Real* source = packed[0].data();
  Real* target = output.data();
  for_each_packed<Real>(
      shapes[0], axis_strides[0],
      [source, target](std::size_t to, std::size_t from) { target[to] += source[from]; });
}

template void multiply_accumulate<double>(const Graph&, const LoopNest&, std::vector<double>&,
                                          const std::vector<double>&, const std::vector<double>&);
template void multiply_accumulate<float>(const Graph&, const LoopNest&, std::vector<float>&,
                                         const std::vector<float>&, const std::vector<float>&);

} // namespace monet

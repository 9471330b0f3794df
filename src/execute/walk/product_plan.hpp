// A product's nest as four kinds of loops, for whatever computes it.
#pragma once

#include "execute/walk/operand.hpp"

#include "monet/base/parallel.hpp"
#include "monet/base/stop.hpp"
#include "monet/workload/graph.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace monet {

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

/// Outer loops, rows, reduced ones, and the vector loop. The outer ones come in this order: those
/// whose values never meet in one element of the output, others that the output has, reduced ones.
struct ProductPlan {
  std::array<std::vector<std::int64_t>, 3> shapes;       ///< of the tensors of O, A and B
  std::array<std::vector<std::int64_t>, 3> axis_strides; ///< as they are packed
  std::array<bool, 3> moved{};                           ///< their axes are, in packing
  std::array<OperandMap, 3> maps;
  std::vector<AxisBound> bounds;
  std::vector<std::size_t> outer;
  std::vector<std::int64_t> outer_sizes;
  std::size_t apart_outer = 0; ///< how many never meet
  bool rows_apart = true;      ///< nor do rows
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

ProductPlan plan_product(const Graph& graph, const LoopNest& nest);

/// Rows [low, high) for which a bound holds at an outer point.
void clip_rows(const PlanBound& bound, std::span<const std::int64_t> point, std::int64_t& low,
               std::int64_t& high);

/// Copies between row-major order and an order given by strides: f(plain, packed).
template <class F>
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

template <class Real>
struct FactorPointers {
  Real* output;
  const Real* left;
  const Real* right;
};

/// One block of rows at a point of the outer loops.
struct ProductBlock {
  std::int64_t low = 0; ///< rows
  std::int64_t high = 0;
  std::int64_t first_step = 0; ///< products of each output in the blocks before it, if none is cut
};

/// block(operands at the block, ProductBlock) for all blocks, those of an output one after the
/// other; different outputs on up to `jobs` threads.
template <class Real, class F>
void for_each_block(const ProductPlan& plan, const FactorPointers<Real>& start, int jobs, F block) {
  const std::span sizes(plan.outer_sizes);
  const auto count = [](std::span<const std::int64_t> of) {
    std::int64_t product = 1;
    for (const std::int64_t size : of)
      product *= size;
    return product;
  };
  const std::int64_t apart = count(sizes.first(plan.apart_outer));
  const std::int64_t summed = count(sizes.subspan(plan.apart_outer));
  constexpr std::int64_t kRowsOfTask = 4;
  constexpr std::int64_t kTasksOfJob = 4;
  std::int64_t pieces = 1;
  if (jobs != 1 && plan.rows_apart && apart < 2 * kTasksOfJob)
    pieces = std::clamp<std::int64_t>(plan.row_size / kRowsOfTask, 1, 2 * kTasksOfJob);
  const std::int64_t rows =
      ((plan.row_size + pieces - 1) / pieces + kRowsOfTask - 1) / kRowsOfTask * kRowsOfTask;
  parallel_for(static_cast<std::size_t>(apart * pieces), jobs, [&](std::size_t task) {
    std::vector<std::int64_t> point(sizes.size(), 0);
    auto rest = static_cast<std::int64_t>(task) / pieces;
    for (std::size_t d = plan.apart_outer; d-- > 0;) {
      point[d] = rest % sizes[d];
      rest /= sizes[d];
    }
    const std::int64_t first = static_cast<std::int64_t>(task) % pieces * rows;
    for (std::int64_t step = 0; step < summed; ++step) {
      check_stop();
      rest = step;
      for (std::size_t d = sizes.size(); d-- > plan.apart_outer;) {
        point[d] = rest % sizes[d];
        rest /= sizes[d];
      }
      ProductBlock rows_here{first, std::min(plan.row_size, first + rows),
                             step * plan.reduced_size};
      for (const PlanBound& bound : plan.outer_bounds)
        clip_rows(bound, point, rows_here.low, rows_here.high);
      if (rows_here.low >= rows_here.high)
        continue;
      std::array<std::int64_t, 3> at{};
      for (std::size_t k = 0; k < 3; ++k)
        at[k] = plan.maps[k].offset + weighted_sum(plan.outer_strides[k], point);
      block(FactorPointers<Real>{start.output + at[0], start.left + at[1], start.right + at[2]},
            rows_here);
    }
  });
}

/// The operands as the plan packs them, and what is computed put back: run(operands).
template <class Real, class F>
void with_packed(const ProductPlan& plan, std::vector<Real>& output, const std::vector<Real>& left,
                 const std::vector<Real>& right, F run) {
  std::array<std::vector<Real>, 3> packed;
  const auto pack = [&](std::size_t k, const std::vector<Real>& plain) {
    if (!plan.moved[k])
      return plain.data();
    packed[k].resize(plain.size());
    const Real* source = plain.data();
    Real* target = packed[k].data();
    for_each_packed(
        plan.shapes[k], plan.axis_strides[k],
        [source, target](std::size_t from, std::size_t to) { target[to] = source[from]; });
    return static_cast<const Real*>(target);
  };
  const Real* a = pack(1, left);
  const Real* b = pack(2, right);
  if (!plan.moved[0]) {
    run(FactorPointers<Real>{output.data(), a, b});
    return;
  }
  packed[0].assign(output.size(), Real{0});
  run(FactorPointers<Real>{packed[0].data(), a, b});
  const Real* source = packed[0].data();
  Real* target = output.data();
  for_each_packed(
      plan.shapes[0], plan.axis_strides[0],
      [source, target](std::size_t to, std::size_t from) { target[to] += source[from]; });
}

} // namespace monet

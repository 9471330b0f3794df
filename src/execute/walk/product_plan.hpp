// A product's nest as four kinds of loops, for whatever computes it.
#pragma once

#include "base/shared/parallel.hpp"
#include "base/shared/transpose.hpp"
#include "execute/walk/operand.hpp"

#include "monet/base/stop.hpp"
#include "monet/workload/graph.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
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
  Integers by_outer;
};

/// Numbers of a tensor's axes: before one of them, along it, and behind it.
struct AxisParts {
  std::int64_t before = 1;
  std::int64_t along = 1;
  std::int64_t behind = 1;
};

/// Outer loops, rows, reduced ones, and the vector loop. The outer ones come in this order: those
/// whose values never meet in one element of the output, others that the output has, reduced ones.
struct ProductPlan {
  std::array<AxisParts, 3> packed; ///< of O, A and B: this axis comes last in packing,
  std::array<bool, 3> moved{};     ///< if it is not the last anyway
  std::array<OperandMap, 3> maps;
  std::vector<AxisBound> bounds;
  std::vector<std::size_t> outer;
  Integers outer_sizes;
  std::size_t apart_outer = 0; ///< how many never meet
  bool rows_apart = true;      ///< nor do rows
  std::array<Integers, 3> outer_strides;
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

/// Upper bound of the products added to one output.
std::int64_t max_products(const ProductPlan& plan);

/// Rows [low, high) for which a bound holds at an outer point.
void clip_rows(const PlanBound& bound, std::span<const std::int64_t> point, std::int64_t& low,
               std::int64_t& high);

/// f(plain, packed) for all elements of a tensor, on threads: where they lie in row-major order,
/// and where with the axis last.
template <class F>
void for_each_packed(const AxisParts& parts, int jobs, F f) {
  constexpr std::int64_t kColumns = 256;
  const auto [before, along, behind] = parts;
  const std::int64_t pieces = (behind + kColumns - 1) / kColumns;
  parallel_for(static_cast<std::size_t>(before * pieces), jobs, [&](std::size_t task) {
    const auto number = static_cast<std::int64_t>(task);
    const std::int64_t first = number % pieces * kColumns;
    const std::int64_t start = number / pieces * along * behind;
    for_each_transposed(along, behind, first, std::min(behind, first + kColumns),
                        [&](std::int64_t plain, std::int64_t packed) {
                          f(static_cast<std::size_t>(start + plain),
                            static_cast<std::size_t>(start + packed));
                        });
  });
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
  const std::int64_t unshared = count(sizes.first(plan.apart_outer));
  const std::int64_t summed = count(sizes.subspan(plan.apart_outer));
  constexpr std::int64_t kRowsOfTask = 4;
  constexpr std::int64_t kTasksOfJob = 4;
  std::int64_t pieces = 1;
  if (jobs != 1 && plan.rows_apart && unshared < 2 * kTasksOfJob)
    pieces = std::clamp<std::int64_t>(plan.row_size / kRowsOfTask, 1, 2 * kTasksOfJob);
  const std::int64_t rows =
      ((plan.row_size + pieces - 1) / pieces + kRowsOfTask - 1) / kRowsOfTask * kRowsOfTask;
  parallel_for(static_cast<std::size_t>(unshared * pieces), jobs, [&](std::size_t task) {
    Integers point(sizes.size(), 0);
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

/// A factor as the plan packs it, copied.
template <class Real>
std::unique_ptr<Real[]> pack(const ProductPlan& plan, std::size_t k, const std::vector<Real>& plain,
                             int jobs) {
  auto packed = std::make_unique_for_overwrite<Real[]>(plain.size());
  const Real* source = plain.data();
  Real* target = packed.get();
  if (plan.moved[k])
    for_each_packed(plan.packed[k], jobs,
                    [=](std::size_t from, std::size_t to) { target[to] = source[from]; });
  else
    std::copy(plain.begin(), plain.end(), target);
  return packed;
}

/// run(zeros), and what is there then added to the output: as the plan packs it.
template <class Real, class To, class F>
void add_packed(const ProductPlan& plan, std::vector<To>& output, int jobs, F run) {
  const auto packed = std::make_unique<Real[]>(output.size());
  run(packed.get());
  const Real* source = packed.get();
  To* target = output.data();
  if (plan.moved[0]) {
    for_each_packed(plan.packed[0], jobs, [=](std::size_t to, std::size_t from) {
      target[to] += static_cast<To>(source[from]);
    });
    return;
  }
  for (std::size_t i = 0; i < output.size(); ++i)
    target[i] += static_cast<To>(source[i]);
}

/// The operands as the plan packs them, and what is computed put back: run(operands).
template <class Real, class F>
void with_packed(const ProductPlan& plan, std::vector<Real>& output, const std::vector<Real>& left,
                 const std::vector<Real>& right, int jobs, F run) {
  std::array<std::unique_ptr<Real[]>, 3> packed;
  const auto factor = [&](std::size_t k, const std::vector<Real>& plain) -> const Real* {
    if (!plan.moved[k])
      return plain.data();
    packed[k] = pack(plan, k, plain, jobs);
    return packed[k].get();
  };
  const Real* a = factor(1, left);
  const Real* b = factor(2, right);
  if (!plan.moved[0])
    run(FactorPointers<Real>{output.data(), a, b});
  else
    add_packed<Real>(plan, output, jobs, [&](Real* out) { run(FactorPointers<Real>{out, a, b}); });
}

} // namespace monet

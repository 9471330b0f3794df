// What a memory that holds the innermost loops has to fetch, by walking the nest.
#pragma once

#include "core_cost/model/candidate.hpp"

#include <cstdint>
#include <set>
#include <span>
#include <utility>
#include <vector>

namespace monet::test {

using core_cost_detail::ArrayUnrolling;
using core_cost_detail::Hierarchy;
using core_cost_detail::Loop;
using core_cost_detail::make_hierarchy;
using core_cost_detail::make_nest_model;
using core_cost_detail::make_spatial_model;
using core_cost_detail::NestModel;
using core_cost_detail::SpatialModel;

struct Prepared {
  CoreProblem problem;
  Core core;
  NestModel model;
  Hierarchy hierarchy;
  SpatialModel spatial;
};

/// No unrolling: every loop is temporal.
inline Prepared prepare(CoreProblem problem, Core core) {
  NestModel model = make_nest_model(problem);
  Hierarchy hierarchy = make_hierarchy(problem, model, core);
  SpatialModel spatial = make_spatial_model(model, hierarchy, ArrayUnrolling(hierarchy.array_dims));
  return {std::move(problem), std::move(core), std::move(model), std::move(hierarchy),
          std::move(spatial)};
}

/// Walks the nest and counts the distinct elements of an operand per run of the innermost `inner`
/// loops.
inline std::int64_t simulated_fetches(const CoreProblem& problem, std::size_t operand,
                                      std::span<const Loop> order, std::size_t inner) {
  std::vector<std::int64_t> at(order.size(), 0);
  std::set<std::vector<std::int64_t>> held;
  std::int64_t fetched = 0;
  for (;;) {
    std::vector<std::int64_t> value(problem.dims.size(), 0);
    std::vector<std::int64_t> stride(problem.dims.size(), 1);
    for (std::size_t i = 0; i < order.size(); ++i) { // inner loops are the low digits of their dim
      value[order[i].dim] += at[i] * stride[order[i].dim];
      stride[order[i].dim] *= static_cast<std::int64_t>(order[i].size);
    }
    std::vector<std::int64_t> element;
    for (const AxisExpr& expr : problem.operands[operand].axes) {
      std::int64_t index = expr.offset;
      for (const AffineTerm& term : expr.terms)
        index += term.coefficient * value[term.dim];
      element.push_back(index);
    }
    fetched += held.insert(element).second ? 1 : 0;
    std::size_t i = 0;
    for (; i < order.size(); ++i) {
      if (++at[i] < static_cast<std::int64_t>(order[i].size))
        break;
      at[i] = 0;
    }
    if (i == order.size())
      return fetched;
    if (i >= inner)
      held.clear();
  }
}

} // namespace monet::test

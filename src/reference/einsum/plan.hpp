// Plans: sequences of runs with the tensors that stay in the buffer between them. A plan is a path
// through places in the cascade, under the capacity of the buffer at every Einsum.
//
// Bounds: every mapping within the buffer corresponds to a path with at most its DRAM bits.
// Lagrange multipliers, called prices, relax the capacity at each Einsum and the agreement of each
// use of a tensor with its place. They bound all paths, and the rest of each path.
#pragma once

#include "reference/einsum/runs.hpp"

#include <cstdint>
#include <vector>

namespace monet::einsum {

/// A tensor that may be in the buffer between runs.
struct Stored {
  std::uint32_t tensor = 0;
  std::int64_t bits = 0;
  std::vector<std::uint32_t> uses; ///< Einsums, ascending
};

struct Plan {
  struct Choice {
    std::uint32_t run = 0;
    std::uint32_t point = 0;
  };
  std::vector<Choice> runs; ///< empty: no plan is better than `known`
  std::int64_t dram = kMax;
  std::int64_t peak = 0;
  std::int64_t bound = 0; ///< lower bound of any mapping; at most `known`
  RunBounds bounds;       ///< for finding runs of better plans
};

struct PlanProblem {
  const RunTable& table;
  std::uint32_t einsums = 0;
  std::vector<Stored> stored; ///< sorted by tensor
  std::int64_t buffer_bits = 0;
  std::int64_t known = kMax; ///< only plans with less DRAM traffic are searched
  RunBounds bounds;          ///< initial prices from another run table; may be empty
};

/// Finds the best plan and a lower bound. `states` limits the states per place of the final search.
Plan plan_runs(const PlanProblem& problem, std::size_t states, const SearchControl& control);

} // namespace monet::einsum

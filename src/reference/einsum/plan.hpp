// Which runs, and what is in the buffer between them: a path through places in the cascade, under
// the capacity of the buffer at every Einsum.
//
// Bounds: every mapping within the buffer is such a path with at most the same DRAM bits. Prices
// on the bits of the buffer at each Einsum and on the agreement of each use of a tensor with where
// the tensor is give a lower bound on all paths, and on the rest of each (Lagrange multipliers).
#pragma once

#include "reference/einsum/runs.hpp"

#include <cstdint>
#include <vector>

namespace monet::einsum {

/// A tensor that may be in the buffer between runs.
struct Stored {
  std::uint32_t tensor = 0;
  std::int64_t bits = 0;
  std::vector<std::uint32_t> uses; ///< Einsums, rising
};

struct Plan {
  struct Choice {
    std::uint32_t run = 0;
    std::uint32_t point = 0;
  };
  std::vector<Choice> runs; ///< empty: none is better than what is known
  std::int64_t dram = kMax;
  std::int64_t peak = 0;
  std::int64_t bound = 0; ///< of any mapping; `known` when none is better
  RunBounds bounds;       ///< for runs that may make better plans
};

struct PlanProblem {
  const RunTable& table;
  std::uint32_t einsums = 0;
  std::vector<Stored> stored; ///< by tensor
  std::int64_t buffer_bits = 0;
  std::int64_t known = kMax; ///< only plans with less DRAM traffic are wanted
  RunBounds bounds;          ///< of other runs of the cascade, or empty: prices to begin with
};

/// `states`: followed after each run by the search that proves.
Plan plan_runs(const PlanProblem& problem, std::size_t states, const SearchControl& control);

} // namespace monet::einsum

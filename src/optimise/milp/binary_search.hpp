// Branch and cut for programs with binary columns, after a root tightened by cuts and reduced
// costs. Unlike CBC's, its bounds come from dual values and account for rounding errors.
#pragma once

#include "optimise/milp/milp_model.hpp"

#include <cstdint>
#include <span>
#include <vector>

namespace monet {

/// Program: minimise cost * x with lower <= x <= upper, rows and `pool` rows; x is 0 or 1.
struct BinaryProgram {
  std::vector<double> lower, upper, cost; ///< per column
  std::vector<LinearRow> rows;
  std::vector<LinearRow> pool; ///< rows that solutions rarely violate, added when violated
                               /// Sets of columns whose sums are also branched on.
  std::vector<std::vector<std::uint32_t>> sums;
};

struct BinaryOptions {
  std::int64_t nodes = 10'000;
  std::int64_t patience =
      std::numeric_limits<std::int64_t>::max(); ///< maximum nodes after a solution
  double cutoff = kUnbounded;                   ///< only solutions with lower cost are searched
  double step = 0;                              ///< all costs are multiples of it; 0 if unknown
};

/// Finds the cheapest solution below the cutoff; status and bound are defined as in
/// MilpModel::solve. Proofs rely on Clp's infeasibility and CGL's Gomory cuts.
MilpResult search_binary(const BinaryProgram& program, const SearchControl& control,
                         const BinaryOptions& options);

/// Removes and returns the rows of the pool that the point violates.
std::vector<LinearRow> take_broken(std::vector<LinearRow>& pool, std::span<const double> x);

/// Root with cuts of CGL and columns fixed by their reduced costs.
struct TightRoot {
  std::vector<LinearRow> cuts;
  bool exhausted = false; ///< proven: no solution is below the cutoff
};
/// Tightens the bounds of `program` without excluding any solution below `limit`.
TightRoot tighten_root(BinaryProgram& program, double limit, const SearchControl& control);

} // namespace monet

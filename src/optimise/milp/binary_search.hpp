// Branch and cut for programs whose columns are all 0 or 1, after a root that is tightened by cuts
// and by prices. Unlike CBC's, its bounds are those of prices, rounding errors taken off.
#pragma once

#include "optimise/milp/milp_model.hpp"

#include <cstdint>
#include <span>
#include <vector>

namespace monet {

/// minimise cost * x, lower <= x <= upper, rows, `pool` rows; x 0 or 1.
struct BinaryProgram {
  std::vector<double> lower, upper, cost; ///< per column
  std::vector<LinearRow> rows;
  std::vector<LinearRow> pool; ///< rows that few solutions break, used where they are
  /// Columns whose sum is branched on, too.
  std::vector<std::vector<std::uint32_t>> sums;
};

struct BinaryOptions {
  std::int64_t nodes = 10'000;
  std::int64_t patience = std::numeric_limits<std::int64_t>::max(); ///< nodes after a solution
  double cutoff = kUnbounded; ///< solutions that cost this or more are of no interest
  double step = 0;            ///< every solution costs a multiple of it; 0: nothing known
};

/// The cheapest solution below the cutoff. Status and bound as MilpModel::solve's. Sound but for
/// what Clp calls infeasible and for CGL's Gomory cuts.
MilpResult search_binary(const BinaryProgram& program, const SearchControl& control,
                         const BinaryOptions& options);

/// Takes the rows that the point breaks out of the pool.
std::vector<LinearRow> take_broken(std::vector<LinearRow>& pool, std::span<const double> x);

/// Cuts at the root, found by CGL, and columns fixed by their reduced costs.
struct TightRoot {
  std::vector<LinearRow> cuts;
  bool exhausted = false; ///< nothing is below the cutoff
};
/// Bounds of `program` are moved where nothing below `limit` is lost.
TightRoot tighten_root(BinaryProgram& program, double limit, const SearchControl& control);

} // namespace monet

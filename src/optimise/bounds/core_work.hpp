// Minimum cycles and energy of an operator on each type of core, for any tiling.
#pragma once

#include "optimise/shared/step_bounds.hpp"

#include "monet/hardware/chip.hpp"

#include <vector>

namespace monet {

/// Set of cores with equal costs.
struct CoreType {
  CoreId example;
  double count = 0;
};

/// Minimum costs of an operator on one type of core, over all its tiles.
struct CoreWork {
  bool able = false;
  double cycles = 0;        ///< total
  double per_iteration = 0; ///< at most `cycles` over the iterations
  double compute_pj = 0;
  double memory_pj = 0; ///< for any number of tiles
  double tiled_pj = 0;  ///< before the rounding loss of each tile's counts
  double lost_pj = 0;   ///< maximum rounding loss per tile
};

struct WorkTable {
  std::vector<CoreType> types;
  std::vector<std::vector<CoreWork>> work; ///< [operator][type]
  std::vector<double> iterations;          ///< per operator, iterations in every form
  std::vector<double> padding;             ///< per operator, all other iterations
};

/// Computes the table. Throws InfeasibleError for an operator without a core.
WorkTable work_table(const TrainingGraph& step, const Chip& chip, const StepBoundOptions& options);

/// Lower bound on the time for `load[operator][type]` cycles if each operator may be divided freely
/// over its types: the maximum of the bounds from several vectors of prices.
class WorkBound {
public:
  explicit WorkBound(const WorkTable& table);
  /// Bound for the whole work.
  double all() const { return all_; }
  /// Bound for a number of iterations of each operator (0: none). With all iterations, an operator
  /// counts with its total cycles.
  double of(const std::vector<double>& iterations) const;

private:
  const WorkTable& table_;
  std::vector<std::vector<double>> prices_;        ///< each per type; sum of count * price is 1
  std::vector<std::vector<double>> least_;         ///< [price][operator]: minimum priced cycles
  std::vector<std::vector<double>> min_iteration_; ///< least_ for a single iteration
  double all_ = 0;
};

} // namespace monet

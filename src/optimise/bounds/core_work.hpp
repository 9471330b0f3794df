// Least cycles and energy of an operator on each kind of core, for any way of cutting it.
#pragma once

#include "monet/hardware/chip.hpp"
#include "monet/optimise/step_bounds.hpp"

#include <vector>

namespace monet {

/// Cores that cost the same.
struct CoreType {
  CoreId example;
  double count = 0;
};

/// What an operator needs on one type of core, over all its tiles together.
struct CoreWork {
  bool able = false;
  double cycles = 0;        ///< in all
  double per_iteration = 0; ///< no more than `cycles` over the iterations
  double compute_pj = 0;
  double memory_pj = 0; ///< however many tiles there are
  double tiled_pj = 0;  ///< the same, but for what each tile's counts lose by rounding down
  double lost_pj = 0;   ///< so much per tile at most
};

struct WorkTable {
  std::vector<CoreType> types;
  std::vector<std::vector<CoreWork>> work; ///< [operator][type]
  std::vector<double> iterations;          ///< per operator, those that every form computes
  std::vector<double> padding;             ///< the others
};

/// InfeasibleError for an operator without a core.
WorkTable work_table(const TrainingGraph& step, const Chip& chip, const StepBoundOptions& options);

/// Least time for `load[operator][type]` cycles when each operator is spread over its types at
/// will: the largest of the bounds of several prices of the types' time.
class WorkBound {
public:
  explicit WorkBound(const WorkTable& table);
  /// Of the whole work.
  double all() const { return all_; }
  /// Of so many iterations of each operator (0: none); the operator's own cycles where all run.
  double of(const std::vector<double>& iterations) const;

private:
  const WorkTable& table_;
  std::vector<std::vector<double>> prices_;        ///< each: per type; count * price adds up to 1
  std::vector<std::vector<double>> least_;         ///< [price][operator]: cheapest cycles in all
  std::vector<std::vector<double>> min_iteration_; ///< the same of one iteration
  double all_ = 0;
};

} // namespace monet

// Random changes of an allocation, and simple allocations to start from.
#pragma once

#include "base/shared/rng.hpp"

#include "monet/optimise/allocation.hpp"

#include <cstdint>
#include <vector>

namespace monet {

class AllocationMoves {
public:
  explicit AllocationMoves(const AllocationEvaluator& evaluator);

  /// Changes one operator, changes a run of operators, moves one to the cores of a graph neighbour,
  /// or swaps the cores of two operators.
  void change(AllocationPlan& plan, RandomStream& random) const;

  /// Plans that place every operator on one core where possible, for each core, and a plan that
  /// uses the maximum number of cores.
  std::vector<AllocationPlan> simple_plans() const;

private:
  using Cores = std::vector<CoreId>;

  std::size_t any_operator(RandomStream& random) const;
  void change_one(AllocationPlan& plan, RandomStream& random) const;
  void change_run(AllocationPlan& plan, RandomStream& random) const;
  void follow(AllocationPlan& plan, RandomStream& random) const;
  void swap(AllocationPlan& plan, RandomStream& random) const;
  /// Sets the operator's cores, with a random choice among the ways to divide it over them.
  void set_cores(std::size_t op, const Cores& cores, AllocationPlan& plan,
                 RandomStream& random) const;

  const std::vector<std::vector<OperatorAllocation>>& choices_;
  std::vector<std::vector<std::uint32_t>> neighbours_; ///< per operator
  std::vector<std::uint32_t> free_;                    ///< operators with several choices
  std::vector<CoreId> cores_;                          ///< compute cores of the chip
};

} // namespace monet

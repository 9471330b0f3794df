// Steps from one allocation to another, and simple allocations to start from.
#pragma once

#include "monet/base/rng.hpp"
#include "monet/optimise/allocation.hpp"

#include <cstdint>
#include <vector>

namespace monet {

class AllocationMoves {
public:
  explicit AllocationMoves(const AllocationEvaluator& evaluator);

  /// Changes one operator, an operator and those after it, an operator to the cores of a neighbour
  /// in the graph, or two operators that swap.
  void change(AllocationPlan& plan, RandomStream& random) const;

  /// Everything on one core as far as it can, for each core; on as many cores as it can.
  std::vector<AllocationPlan> simple_plans() const;

private:
  using Cores = std::vector<CoreId>;

  std::size_t any_operator(RandomStream& random) const;
  void change_one(AllocationPlan& plan, RandomStream& random) const;
  void change_run(AllocationPlan& plan, RandomStream& random) const;
  void follow(AllocationPlan& plan, RandomStream& random) const;
  void swap(AllocationPlan& plan, RandomStream& random) const;
  /// Gives the operator these cores, and of the ways to share out over them one by chance.
  void set_cores(std::size_t op, const Cores& cores, AllocationPlan& plan,
                 RandomStream& random) const;

  const std::vector<std::vector<OperatorAllocation>>& choices_;
  std::vector<std::vector<std::uint32_t>> neighbours_; ///< per operator, in the graph
  std::vector<std::uint32_t> free_;                    ///< operators with several choices
  std::vector<CoreId> cores_;                          ///< of the chip, those that compute
};

} // namespace monet

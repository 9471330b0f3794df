// FusionCovers: finds groups of operators to fuse slice by slice from closed-form estimates,
// without making tiles.
#pragma once

#include "monet/tiling/tiling.hpp"

#include <functional>
#include <memory>
#include <optional>
#include <vector>

namespace monet {

/// Finds fusion plans for any number of chips; the parts that do not depend on the chip are
/// computed once.
///
/// A plan partitions the operators, in their order, into groups of up to 8 neighbours. Updates may
/// join the operator that produces their gradient. The price of a group and its slices has three
/// parts: off-chip traffic, the cycles of its slices on their cores, and their overlap (with n
/// slices, all but 1/n). Tensors that only the group needs cause no traffic. Data that every slice
/// needs and that the cores cannot keep cause traffic once per slice. Slices that do not fit into
/// the cores' memories are excluded. A dynamic program over the order finds the cheapest plan.
class FusionCovers {
public:
  /// Function that returns, per operator, the cycles that the busiest core computes under a plan;
  /// the empty plan is layer by layer. An empty result means that some tile has no mapping.
  using PlanCycles = std::function<std::vector<double>(const FusionPlan&)>;

  /// Plans with their closed-form estimates, and the estimate for layer by layer.
  struct Estimates {
    std::vector<FusionPlan> plans;
    std::vector<double> cycles; ///< estimated latency per plan
    double cycles_apart = 0;    ///< estimated latency of layer by layer
  };

  /// Minimum benefit per tile as a fraction of the step's cycles, so that plans found without
  /// PlanCycles are fast to schedule.
  static constexpr double kTile = 3e-6;

  /// Prepares the search. Keeps a reference to `step`, whose views must be folded.
  explicit FusionCovers(const TrainingGraph& step, Halo halo = Halo::cached);
  ~FusionCovers();
  FusionCovers(const FusionCovers&) = delete;
  FusionCovers& operator=(const FusionCovers&) = delete;

  /// Finds the cheapest plans by latency, by latency and traffic, and by traffic. Of these, the
  /// first two are also found with half the memory, and the first with a quarter; equal plans are
  /// listed once. The result is empty if no group is better than separate operators. The options'
  /// mapping assigns operators to cores. `cycles` is called for layer by layer and for a few
  /// intermediate plans, from which other slices are estimated. If it is empty, all lanes are
  /// assumed busy, and there is one plan, the cheapest by latency and tiles. Thread-safe. Throws
  /// the exceptions of make_tiles().
  Estimates plans(const Chip& chip, const TilingOptions& options,
                  const PlanCycles& cycles = {}) const;

  /// Plan of automatic_fusion(), computed once for all chips with the same memory sizes.
  /// Thread-safe.
  FusionPlan stacks_by_memory(const Chip& chip, const TilingOptions& options) const;

private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// Per operator of the update phase: the operator outside it that produces its gradient, if the
/// update depends only on that operator and its predecessors.
std::vector<std::optional<OpId>> gradient_makers(const Graph& graph);

} // namespace monet

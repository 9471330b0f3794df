// Which operators had better run together, slice by slice, by closed forms: no tile is made.
#pragma once

#include "monet/tiling/tiling.hpp"

#include <functional>
#include <memory>
#include <optional>
#include <vector>

namespace monet {

/// Finds plans for any number of chips: what does not depend on the chip is found once.
///
/// A plan parts the operators, in their order, into groups of up to 8 neighbours; updates may join
/// the operator that makes their gradient. A group and its slices are priced by what passes the
/// off-chip port (tensors that nobody outside the group needs do not; what every slice needs and
/// the cores cannot keep passes once a slice), by the cycles of its slices on the cores that share
/// them out, and by how far these overlap: with n slices all but 1/n. Slices that do not fit the
/// cores' memories have no price. A dynamic program over the order finds the cheapest plan.
class FusionCovers {
public:
  /// Per operator, the cycles that the busiest core computes; the empty plan is layer by layer.
  /// Nothing where some tile has no mapping.
  using PlanCycles = std::function<std::vector<double>(const FusionPlan&)>;

  /// Plans, and what closed forms say of them and of layer by layer.
  struct Estimates {
    std::vector<FusionPlan> plans;
    std::vector<double> cycles; ///< per plan
    double cycles_apart = 0;    ///< layer by layer
  };

  /// Without PlanCycles, plans have to be scheduled fast: of the step's cycles, what a tile has to
  /// gain.
  static constexpr double kTile = 3e-6;

  /// Keeps a reference to `step`, whose views are folded.
  explicit FusionCovers(const TrainingGraph& step, Halo halo = Halo::cached);
  ~FusionCovers();
  FusionCovers(const FusionCovers&) = delete;
  FusionCovers& operator=(const FusionCovers&) = delete;

  /// The cheapest plans by latency, by latency and traffic, and by traffic, the first two as if
  /// memories were half as large, and the first as if they were a quarter, each once. None where no
  /// group gains anything. The options' mapping says which cores run what. `cycles` is asked for
  /// layer by layer and for a few plans on the way, from which estimates of other slices follow;
  /// empty: all lanes are always busy, and there is one plan, the cheapest by latency and tiles.
  /// From any thread. Throws as make_tiles() does.
  Estimates plans(const Chip& chip, const TilingOptions& options,
                  const PlanCycles& cycles = {}) const;

  /// automatic_fusion(), which is found once for chips whose memories are as large. From any
  /// thread.
  FusionPlan stacks_by_memory(const Chip& chip, const TilingOptions& options) const;

private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// Per operator of the update phase: the operator outside it that makes its gradient, if all it
/// waits for in this step is that one and what comes before.
std::vector<std::optional<OpId>> gradient_makers(const Graph& graph);

} // namespace monet

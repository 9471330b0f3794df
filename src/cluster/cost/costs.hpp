// What the collectives of a rank's step take, its kernels on a device with a table, and its
// operators on a modelled chip.
#pragma once

#include "cluster/cost/blocks.hpp"
#include "cluster/cost/layout.hpp"

#include "monet/cluster/kernel_table.hpp"
#include "monet/cluster/stages.hpp"
#include "monet/core_cost/core_cost.hpp"
#include "monet/hardware/chip.hpp"
#include "monet/training_graph/training.hpp"
#include "monet/workload/graph.hpp"

#include <cstddef>
#include <cstdint>
#include <set>
#include <span>
#include <vector>

namespace monet::cluster_cost {

/// The blocks that read a weight in their passes.
std::set<std::int64_t> parts_reading(const RankLayout& layout, TensorId weight);

/// Of an operator before the update: the pass of its block.
PassCost& pass_of(const RankLayout& layout, std::vector<Block>& blocks, std::size_t op);

/// To passes and updates of `blocks`, and those of shared weights alone to `shared`. `host_ns` is
/// what the host takes to launch one.
void add_exchanges(const Cluster& cluster, const ParallelStrategy& strategy,
                   const RankLayout& layout, double host_ns, std::vector<Block>& blocks,
                   std::vector<SharedWeights>& shared);

/// A product as matrix units see it: `batch` times [m, k] by [k, n].
struct ProductShape {
  std::int64_t m = 1, n = 1, k = 1, batch = 1;
};

/// Bytes that an access moves: what the loops touch, but no more than one element an iteration.
double moved_bytes(const Graph& graph, const LoopNest& nest, const Access& access);

/// Operators that run as one kernel.
struct Kernel {
  std::vector<OpId> ops; ///< in their order; the last but pointwise ones decides what it is
  double bytes = 0;      ///< moved to and from memory, nothing that only passes between them
  double nanoseconds = 0;
};

/// Element-wise operators that follow each other, in one part and pass, are one kernel, and so is a
/// softmax with those before it: what only passes between them is never in memory. Collectives and
/// updates are none. InfeasibleError where the device has no rate for a product's type.
std::vector<Kernel> kernels_of(const Graph& graph, std::span<const OperatorPlace> places,
                               const KernelTable& table, const std::set<TensorId>& masks);

/// Inputs of a rank's step that are causal masks, whole or the rows of a rank's tokens. `step`:
/// what was divided.
std::set<TensorId> causal_masks(const TrainingGraph& step, const RankStep& ranks);
/// Whether the operator is fused attention with one of `masks`, or fills scores by it.
bool is_masked(const Graph& graph, const Operator& op, const std::set<TensorId>& masks);

/// Floating-point operations of products, by operator: `model` of the network without masked
/// scores, `masked` of the masked scores, `hardware` of what runs. Fused attention recomputes the
/// scores in its gradient and, with `skips_masked`, skips masked scores. A causal mask removes half
/// of the scores, also of each context rank: Megatron-LM balances them, with one chunk from either
/// end. In a transformer with experts, `model` excludes empty places and the products that move
/// tokens.
struct Operations {
  std::vector<double> model, masked, hardware;
};
Operations operations_of(const Graph& graph, const std::set<TensorId>& masks, bool skips_masked,
                         const TransformerShape* shape);

/// The type that a product's operands are in. InfeasibleError where the device has no rate for it.
KernelType product_type(const Graph& graph, const Operator& op, const KernelTable& table);

/// What the operators of a rank take on a modelled chip.
struct ChipCosts {
  // By operator; together the latency and the energy of what is modelled.
  std::vector<double> nanoseconds; ///< whole numbers
  std::vector<double> picojoules;
};

/// Models the step, but for its collectives, as `monet schedule` does by default: the better of
/// layer by layer and fused. With `update_apart`, where gradients add up over micro-batches or
/// ranks, passes and update are modelled apart: an update cannot take a gradient from the core that
/// makes it, and must not be paid with every micro-batch. Operators whose tiles run at a time share
/// it; waiting counts for the next one that runs. Energy that is no run's (links, off-chip memory,
/// leakage) is shared out by that time. InfeasibleError where the chip cannot run it, or has no
/// frequency.
ChipCosts chip_costs(const TrainingGraph& step, const Chip& chip, CoreCostCache& costs,
                     bool update_apart);

} // namespace monet::cluster_cost

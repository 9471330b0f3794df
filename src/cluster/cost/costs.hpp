// Costs of a rank's step: its collectives, its activations, its kernels on a device with a table,
// and its operators on a modelled chip. Summed by block in blocks.cpp.
#pragma once

#include "cluster/cost/blocks.hpp"
#include "cluster/cost/layout.hpp"
#include "cluster/shared/stages.hpp"

#include "monet/cluster/kernel_table.hpp"
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

/// The pass of an operator's block that the operator belongs to. It must precede the update.
PassCost& pass_of(const RankLayout& layout, std::vector<Block>& blocks, std::size_t op);

/// Adds the costs of collectives to the passes and updates of `blocks`, and those of shared weights
/// also to `shared`. `host_ns`: host time of launching one collective.
void add_exchanges(const Cluster& cluster, const ParallelStrategy& strategy,
                   const RankLayout& layout, double host_ns, std::vector<Block>& blocks,
                   std::vector<SharedWeights>& shared);

/// Adds the bytes of activations to `blocks`. `in_place_loss`: see ClusterWorkload.
void add_activations(const RankLayout& layout, bool in_place_loss, std::vector<Block>& blocks);

/// The shape of a product on matrix units: `batch` products of [m, k] by [k, n].
struct ProductShape {
  std::int64_t m = 1, n = 1, k = 1, batch = 1;
};

/// Bytes that an access moves: the elements that the loops touch, but at most one per iteration.
double moved_bytes(const Graph& graph, const LoopNest& nest, const Access& access);

/// Operators that run as one kernel.
struct Kernel {
  std::vector<OpId> ops; ///< in order; the first that is not element-wise decides the kind
  double bytes = 0;      ///< moved to and from memory, without values passed between `ops`
  double nanoseconds = 0;
};

/// The kernels of a rank's step, except collectives and updates. Consecutive element-wise operators
/// of one part and pass are fused, also with a softmax that follows them. Values inside a kernel
/// cause no memory traffic. Throws InfeasibleError if the device has no rate for a product's type.
std::vector<Kernel> kernels_of(const Graph& graph, std::span<const OperatorPlace> places,
                               const KernelTable& table, const std::set<TensorId>& masks);

/// Inputs of a rank's step that are causal masks, whole or the rows of a rank's tokens. `step`: the
/// step before partitioning.
std::set<TensorId> causal_masks(const TrainingGraph& step, const RankStep& ranks);
/// Whether the operator is fused attention with one of `masks`, or fills scores by it.
bool is_masked(const Graph& graph, const Operator& op, const std::set<TensorId>& masks);

/// Floating-point operations of products, by operator: `model` of the network without masked
/// scores, `masked` of the masked scores, `hardware` of the executed products. Fused attention
/// recomputes the scores in its gradient and, with `skips_masked`, skips masked scores. A causal
/// mask removes half of the scores, also of each context rank: Megatron-LM balances them, with one
/// chunk from either end. In a transformer with experts, `model` excludes empty places and the
/// products that move tokens.
struct Operations {
  std::vector<double> model, masked, hardware;
};
Operations operations_of(const Graph& graph, const std::set<TensorId>& masks, bool skips_masked,
                         const TransformerShape* shape);

/// The type of a product's operands. Throws InfeasibleError if the device has no rate for it.
KernelType product_type(const Graph& graph, const Operator& op, const KernelTable& table);

/// Time and energy of a rank's operators on a modelled chip.
struct ChipCosts {
  // By operator. Their sums are the latency and the energy of the modelled step.
  std::vector<double> nanoseconds; ///< whole numbers
  std::vector<double> picojoules;
};

/// Models the step without its collectives, as `monet schedule` does by default: the better of
/// layer by layer and fused. With `update_apart`, for gradients that are summed over micro-batches
/// or ranks, passes and update are modelled separately. An update then cannot read a gradient from
/// the core that computes it, and is not repeated for every micro-batch. Operators whose tiles run
/// at the same time share that time, and waiting counts for the next operator that runs. Energy
/// outside of runs (links, off-chip memory, leakage) is divided in proportion to time. Throws
/// InfeasibleError if the chip cannot run the step or has no frequency.
ChipCosts chip_costs(const TrainingGraph& step, const Chip& chip, CoreCostCache& costs,
                     bool update_apart);

} // namespace monet::cluster_cost

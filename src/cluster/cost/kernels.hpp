// The operators of a rank as kernels of a device, and what each takes by its table.
#pragma once

#include "monet/cluster/kernel_table.hpp"
#include "monet/cluster/stages.hpp"
#include "monet/workload/graph.hpp"

#include <cstdint>
#include <span>
#include <vector>

namespace monet::cluster_cost {

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
                               const KernelTable& table);

/// The type that a product's operands are in. InfeasibleError where the device has no rate for it.
KernelType product_type(const Graph& graph, const Operator& op, const KernelTable& table);

} // namespace monet::cluster_cost

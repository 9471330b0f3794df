// Tensors in blocks that share a scale, as products need them: along the axes that they add up.
#pragma once

#include "monet/training_graph/options.hpp"
#include "monet/workload/graph.hpp"

#include <functional>
#include <utility>
#include <vector>

namespace monet {

/// A factor of a product.
struct SummedFactor {
  std::size_t operand = 0; ///< of the nest
  TensorId stored;         ///< what it is read from, behind its views
  int axis = -1;           ///< of `stored`, counted from the last
};

/// The factors of an operator's products of which `counts(stored)` holds, each with the axis that
/// blocks lie along: where all of them have an axis along which one loop of the sum goes, and which
/// it shares with no finer loop of the result, that of the loop with the longest runs, the last of
/// equals; else each its own longest; without such a loop (the image rows that a convolution's
/// window slides over), the axis with the longest loop of the sum. No factor without such a loop.
std::vector<SummedFactor> summed_factors(const Graph& graph, const Operator& op,
                                         const std::function<bool(TensorId)>& counts);

/// Has blocks lie along the axes that products add up, in a graph of forward and backward operators
/// (tensors and operators keep their ids where nothing changes; those of the source's tensors
/// stay):
/// - Blocks of one row lie along the axis that the first product of a tensor adds up, squares along
///   the first two. What no product reads keeps its blocks.
/// - A product that adds up another axis reads a copy in blocks along that. `copy`: both are made
///   at once from what was computed, by an ai.monet.Quantise behind it (a Cast becomes one).
///   `requantise`: the copy is made before its reader, of the first blocks' numbers, by an
///   ai.monet.Requantise, once in the forward and once in the backward phase. What is given to the
///   step (inputs, weights) is in one form: its copies are always made so.
Graph with_block_copies(const Graph& graph, const Precision& precision);

/// Replaces each Requantise of a weight that has a copy in full precision by a Quantise of that
/// copy. `masters`: pairs (weight, copy in full precision). Used for `copy` only.
Graph quantise_masters(Graph graph, const std::vector<std::pair<TensorId, TensorId>>& masters);

/// The quantised copies of a tensor, first the one that has its place in the network: all outputs
/// of the ai.monet.Quantise that makes or alone reads it. Any other tensor itself.
std::vector<TensorId> quantised_copies(const Graph& graph, TensorId id);
/// Whether the operator makes quantised copies of its operand.
bool makes_quantised_copies(const Operator& op);

} // namespace monet

// The reductions of operators over loops, the readers of a result's axis, and the weights of
// gradients. Used by the partition and by cost/exchanges.cpp.
#pragma once

#include "monet/training_graph/training.hpp"

#include <cstddef>
#include <cstdint>
#include <map>

namespace monet::mesh {

enum class OverLoop {
  sum,     ///< results of parts of the loop add up
  largest, ///< the largest of the parts' results is the result
  local,   ///< parts have separate results: statistics of a batch normalisation
  none,    ///< the result needs the loop as a whole
};

/// The dependence of a written operand on a loop that it lacks.
OverLoop over_loop(const Operator& op, const Access& written, std::size_t loop);
/// Whether the operator may be cut along a coupled loop: batch normalisation, whose ranks normalise
/// by the statistics of their local samples.
bool has_local_statistics(const Operator& op, std::size_t loop);
/// Whether the operator converts the type of a weight, or computes the scale of such a conversion.
bool casts_weight(const Operator& op);
/// Whether the operator is linear, so that it can be applied to partial sums that are reduced
/// later.
bool is_sum_of_operands(const Operator& op);
/// Whether the operator is a linear collective along another axis. It can be applied to partial
/// sums, and their later reduction sends nothing twice.
bool is_linear_exchange(const Operator& op);

/// The step with explicit divisors of all mean losses, so that a part of the loss can be divided by
/// the count of all parts.
TrainingGraph with_divisors(const TrainingGraph& step);

/// The number of equal parts in which readers read a result's axis: 3 if queries, keys and values
/// are the columns of one product. 1 if the parts differ or do not cover the axis.
std::int64_t parts_read(const Graph& graph, TensorId result, std::size_t dim);
/// Whether every reader in the forward part, directly or after sums, needs the whole axis, as a
/// softmax over it does. False if a loss reads the result.
bool is_taken_whole(const Graph& graph, TensorId result, std::size_t dim);

/// The weight of every parameter gradient, and of every term of a gradient that is a sum.
std::map<TensorId, TensorId> weights_of_gradients(const TrainingGraph& step);

} // namespace monet::mesh

// What operators do along loops that a result lacks, what the readers of a result do with one of
// its axes, and whose gradient a tensor is.
#pragma once

#include "monet/training_graph/training.hpp"

#include <cstddef>
#include <cstdint>
#include <map>

namespace monet::mesh {

enum class OverLoop {
  sum,     ///< results of parts of the loop add up
  largest, ///< the largest of the parts' results is the result
  local,   ///< a part has a result of its own: statistics of a batch normalisation
  none,    ///< the result needs the loop as a whole
};

/// Of one operand that the operator writes, along a loop that it lacks.
OverLoop over_loop(const Operator& op, const Access& written, std::size_t loop);
/// The operator may be cut along a loop that is coupled: batch normalisation, whose ranks normalise
/// by statistics of their own samples.
bool has_local_statistics(const Operator& op, std::size_t loop);
/// Whether the operator converts the type of a weight, or computes the scale of such a conversion.
bool casts_weight(const Operator& op);
/// Sums of results are the result of sums: what is applied to terms may be added up later.
bool is_sum_of_operands(const Operator& op);
/// The same of an exchange along another axis, where nothing is sent twice by adding up later.
bool is_linear_exchange(const Operator& op);

/// The step with the divisor of every mean that a loss takes as a number of its own, so that a part
/// of the loss can be divided by the count of all parts.
TrainingGraph with_divisors(const TrainingGraph& step);

/// In how many parts of equal size readers take a result's axis, all of them together the whole of
/// it: 3 where queries, keys and values are the columns of one product.
std::int64_t parts_read(const Graph& graph, TensorId result, std::size_t dim);
/// Every reader in the forward part, behind sums with other operands, needs the axis as a whole: a
/// softmax over it. A loss is no such reader.
bool is_taken_whole(const Graph& graph, TensorId result, std::size_t dim);

/// The weight of every gradient of a parameter, and of the terms of those that are sums.
std::map<TensorId, TensorId> weights_of_gradients(const TrainingGraph& step);

} // namespace monet::mesh

// What the readers of a result do with one of its axes, and whose gradient a tensor is.
#pragma once

#include "monet/training/training.hpp"

#include <cstddef>
#include <cstdint>
#include <map>

namespace monet::mesh {

/// In how many parts of equal size readers take a result's axis, all of them together the whole of
/// it: 3 where queries, keys and values are the columns of one product.
std::int64_t parts_read(const Graph& graph, TensorId result, std::size_t dim);
/// Every reader in the forward part, behind sums with other operands, needs the axis as a whole: a
/// softmax over it. A loss is no such reader.
bool is_taken_whole(const Graph& graph, TensorId result, std::size_t dim);

/// The weight of every gradient of a parameter, and of the terms of those that are sums.
std::map<TensorId, TensorId> weights_of_gradients(const TrainingGraph& step);

} // namespace monet::mesh

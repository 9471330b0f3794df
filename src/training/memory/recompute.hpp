// Tensors that are computed again in the backward part instead of being stored.
#pragma once

#include "monet/base/errors.hpp"
#include "monet/workload/graph.hpp"

#include <string>
#include <vector>

namespace monet {

/// Before the first backward operator that reads a tensor whose name matches one of the patterns,
/// the forward operator that made it runs again (Phase::recompute) and its results are read
/// instead; its inputs are then stored, unless they match as well. Ids of tensors stay. Problems: a
/// pattern that matches nothing stored, an operator that would not compute the same again.
Graph recompute(const Graph& graph, const std::vector<std::string>& patterns,
                ProblemList& problems);

/// Recomputes tensors that are another stored tensor times, plus or over a number, for which what is
/// stored anyway is enough, and casts to wider types.
Graph recompute_scaled(const Graph& graph);
/// Computes every stored result of element-wise operators, sums and look-ups in tables again that
/// follow, a few operators on, from what is stored, too, or need not be made.
Graph recompute_cheap(const Graph& graph);

/// Makes stored copies again of what is stored, too, or need not be made; of a folded graph.
Graph recompute_copies(const Graph& graph);

/// Storages of forward tensors whose name matches; a problem for a pattern that matches none.
std::vector<TensorId> forward_tensors_matching(const Graph& graph,
                                               const std::vector<std::string>& patterns,
                                               std::string_view what, ProblemList& problems);

} // namespace monet

// Operators of a step that run again: plans of recomputation become operators of the graph.
#pragma once

#include "monet/training_graph/training.hpp"

#include <string>
#include <vector>

namespace monet {

/// Why the operator cannot run again with the same result and without a second effect ("draws
/// random numbers, which are not drawn twice"); empty when it can. Operators of the forward, loss
/// and recompute phases can; a batch normalisation runs again without touching its running
/// statistics.
std::string recompute_obstacle(const Graph& graph, const Operator& op);

/// The step with its operators in the order of `runs`, which names every operator of the graph at
/// least once, for the first time in the graph's order. Every further run is an operator of its own
/// (Phase::recompute, `forward_op` set, called "<name>.recomputed", ".recomputed.2", ...) that
/// writes tensors of its own; an operator reads what the last run before it wrote. Views of what
/// ran again are made again where they are read. Ids of tensors stay; stored activations, their
/// bytes and owners are those of the new order. InternalError for runs that are no such order;
/// InputError at the node of an operator that cannot run again.
TrainingGraph with_recomputation(const TrainingGraph& step, const std::vector<OpId>& runs);

/// The same for the step with its views (for export), by runs of the operators of `folded`, which
/// is fold_views(step).
TrainingGraph with_recomputation(const TrainingGraph& step, const TrainingGraph& folded,
                                 const std::vector<OpId>& folded_runs);

} // namespace monet

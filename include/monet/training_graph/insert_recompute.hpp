// with_recomputation(): converts recomputation plans to operators of a step's graph.
// Example:
//   TrainingGraph run_again(const TrainingGraph& step, OpId op, OpId reader) {
//     std::vector<OpId> runs = all_operators(step.graph);
//     if (recompute_obstacle(step.graph, step.graph.op(op)).empty())
//       runs.insert(runs.begin() + reader.value, op); // just before the reader
//     return with_recomputation(step, runs);
//   }
#pragma once

#include "monet/training_graph/training.hpp"

#include <string>
#include <vector>

namespace monet {

/// Reason why the operator cannot run again with the same result and without a second effect
/// ("draws random numbers, which are not drawn twice"). Empty if it can, which requires the
/// forward, loss or recompute phase. A repeated batch normalisation does not update its running
/// statistics.
std::string recompute_obstacle(const Graph& graph, const Operator& op);

/// Makes the step with its operators in the order of `runs`. Every operator of the graph must be in
/// `runs` at least once; first runs are in the graph's order. Every further run becomes a separate
/// operator with separate tensors. It has Phase::recompute, `forward_op`, and the name
/// "<name>.recomputed", ".recomputed.2", ... Operators read the result of the last run before them.
/// Views of recomputed tensors are recreated where they are read. Tensor ids remain; stored
/// activations, their bytes and owners are those of the new order. Throws InternalError for invalid
/// `runs`, and InputError at the node of an operator that cannot run again.
TrainingGraph with_recomputation(const TrainingGraph& step, const std::vector<OpId>& runs);

/// Makes the step with its views (for export) and with recomputation. `folded` is fold_views(step),
/// and `folded_runs` refers to its operators.
TrainingGraph with_recomputation(const TrainingGraph& step, const TrainingGraph& folded,
                                 const std::vector<OpId>& folded_runs);

} // namespace monet

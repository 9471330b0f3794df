// Rules of com.microsoft operators in published training graphs.
#include "workload/operators/families.hpp"

#include <algorithm>

namespace monet {

/// (dY scalar, log-probabilities, labels) -> gradient of the scores. The class axis is the one that
/// the labels lack: the last axis if the labels' shape implies it, otherwise axis 1.
LoopNest build_microsoft_cross_entropy_grad(const Graph& graph, const Operator& op) {
  const auto& scores = input_shape(graph, op, 1);
  const auto& labels = input_shape(graph, op, 2);
  if (scores.size() != labels.size() + 1)
    fail(graph, op, "labels do not fit the scores");
  const bool last = std::equal(labels.begin(), labels.end(), scores.begin());
  LoopNestBuilder nest(graph, op, ComputeKind::vector, VectorWork{1, 1, 0, 1, 0, 1});
  const std::vector<LoopIndex> loops = nest.loops_over(scores);
  std::vector<AxisExpr> sample = axes_of(loops);
  sample.erase(last ? sample.end() - 1 : sample.begin() + 1);
  nest.output(0, "O", axes_of(loops));
  nest.input(0, "W", nest.broadcast(input_shape(graph, op, 0), loops));
  nest.input(1, "I", axes_of(loops));
  nest.input(2, "labels", sample);
  return nest.finish();
}

} // namespace monet

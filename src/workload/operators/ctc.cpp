// Connectionist temporal classification (Graves et al. 2006): the likelihood of a label sequence,
// summed over blanks and repetitions. S labels yield L = 2 S + 1 states.
#include "workload/operators/families.hpp"

namespace monet {

namespace {

// Order of work: add, multiply, divide, compare, square_root, transcendental.
constexpr VectorWork kForward{6, 0, 0, 3, 0, 4}; // log(sum of three exponentials) + log-probability
/// Forward recursion reversed in time, charged per class instead of per state, and exp(x) - exp(sum
/// - x).
constexpr VectorWork kBackward{9, 1, 0, 3, 0, 6};

void check_shapes(const Graph& graph, const Operator& op) {
  const auto& scores = input_shape(graph, op, 0);
  const auto& labels = input_shape(graph, op, 1);
  if (scores.size() != 3 || labels.size() != 2 || scores[1] != labels[0])
    fail(graph, op, "log-probabilities are [T, B, C], labels [B, S]");
}

} // namespace

/// (log-probabilities [T, B, C], labels [B, S]) -> (loss [], negative log-likelihoods [B],
/// logarithms of the forward variables [B, T, L]).
LoopNest build_ctc(const Graph& graph, const Operator& op) {
  check_shapes(graph, op);
  LoopNestBuilder nest(graph, op, ComputeKind::vector, kForward);
  const auto& scores = input_shape(graph, op, 0);
  const LoopIndex b = nest.loop("B", scores[1]);
  const LoopIndex t = nest.loop("T", scores[0]);
  const LoopIndex l = nest.loop("L", 2 * input_shape(graph, op, 1)[1] + 1);
  nest.couple(t);
  nest.couple(l);
  nest.output(0, "O", {});
  if (has_output(op, 1))
    nest.output(1, "likelihood", {axis(b)});
  if (has_output(op, 2))
    nest.output(2, "alpha", {axis(b), axis(t), axis(l)});
  nest.input(0, "I", {axis(t), axis(b), axis_data_dependent()});
  nest.input(1, "labels", {axis(b), axis_data_dependent()});
  return nest.finish();
}

/// (log-probabilities, labels, negative log-likelihoods, forward variables) -> gradient of the
/// log-probabilities.
LoopNest build_ctc_grad(const Graph& graph, const Operator& op) {
  check_shapes(graph, op);
  LoopNestBuilder nest(graph, op, ComputeKind::vector, kBackward);
  const auto& scores = input_shape(graph, op, 0);
  const LoopIndex b = nest.loop("B", scores[1]);
  const LoopIndex t = nest.loop("T", scores[0]);
  const LoopIndex c = nest.loop("C", scores[2]);
  nest.couple(t);
  nest.couple(c);
  nest.output(0, "O", {axis(t), axis(b), axis(c)});
  nest.input(0, "I", {axis(t), axis(b), axis(c)});
  nest.input(1, "labels", {axis(b), axis_data_dependent()});
  nest.input(2, "likelihood", {axis(b)});
  nest.input(3, "alpha", {axis(b), axis(t), axis_data_dependent()});
  return nest.finish();
}

} // namespace monet

// Bytes that PyTorch keeps for the operators of a loss, for eager.cpp.
#include "training_graph/memory/eager_parts.hpp"
#include "workload/shared/op_types.hpp"

namespace monet {

namespace {

bool is_mean(const Operator& op) {
  return op.attributes.text("reduction", "mean") == "mean";
}

/// Where labels are ignored, which is asked of every label, once more where a mean counts them
/// without weights; the divisor of the likelihood; and of the mean, where it is a tensor.
std::int64_t smoothing_bytes(const Operator& op, std::int64_t labels) {
  const bool weighted = op.inputs.size() > 2;
  const std::int64_t divisor = is_mean(op) && op.outputs.size() > 1 ? 0 : 4;
  return labels + divisor + (!is_mean(op) ? 0 : weighted ? 4 : 5 * labels);
}

/// Lengths as real numbers; which samples do not count.
std::int64_t sequence_bytes(const Operator& op, const Tensor& labels) {
  const std::int64_t samples = labels.shape.at(0);
  return (is_mean(op) ? 4 * samples : 0) + op.attributes.integer("zero_infinity", 0) * samples;
}

} // namespace

EagerLoss eager_loss(const Graph& graph, const Operator& op) {
  const auto input = [&](std::size_t i) -> const Tensor& { return graph.tensor(*op.inputs[i]); };
  if (op.op_type == ops::L1Loss) // the absolute value of a difference
    return {bytes_of(size_of(input(0))), false};
  if (op.op_type == ops::Mul) // by its share of the sum
    return {8, false};
  if (op.op_type == ops::CtcLoss)
    return {sequence_bytes(op, input(1))};
  if (op.op_type == ops::LabelSmoothingLoss)
    return {smoothing_bytes(op, element_count(input(1)))};
  if (op.op_type == ops::KlDivLoss && op.attributes.integer("divisor", 1) != 1)
    return {8}; // that it is divided by
  return {};
}

} // namespace monet

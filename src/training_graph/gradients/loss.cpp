// Losses that a network computes itself.
#include "training_graph/gradients/rules.hpp"
#include "workload/shared/op_types.hpp"

namespace monet {

namespace {

/// Inputs: log-probabilities, labels, class weights. A mean over labels of which some do not count,
/// or count more, keeps what it was divided by.
void negative_log_likelihood(GradientContext& context) {
  if (!context.wants(0))
    return;
  GradientContext::Emit what{ops::NegativeLogLikelihoodLossGrad,
                             {context.dy(), context.input(1), context.optional_input(2)},
                             context.op().attributes};
  if (context.op().outputs.size() > 1)
    what.inputs.emplace_back(context.output(1));
  while (!what.inputs.back())
    what.inputs.pop_back();
  context.emit(std::move(what));
}

} // namespace

std::vector<GradientRule> loss_gradients() {
  return {{ops::NegativeLogLikelihoodLoss, negative_log_likelihood, nullptr, 1}};
}

} // namespace monet

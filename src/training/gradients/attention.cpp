// Fused attention: one backward operator that recomputes the scores from the saved logarithms.
#include "training/gradients/rules.hpp"

namespace monet {

namespace {

/// Inputs Q, K, V, mask, condition; the mask gets no gradient (it would have to be stored).
void attention(GradientContext& context) {
  GradientContext::Emit what{"AttentionGrad",
                             kMonetDomain,
                             {context.dy(), context.input(0), context.input(1), context.input(2),
                              context.output(0), context.output(1)},
                             context.op().attributes,
                             GradientOf::input};
  for (std::size_t i = 3; i < context.op().inputs.size(); ++i)
    what.inputs.push_back(context.op().inputs[i]);
  std::vector<std::optional<std::size_t>> targets;
  for (std::size_t i = 0; i < 3; ++i)
    targets.push_back(context.wants(i) ? std::optional(i) : std::nullopt);
  context.emit(std::move(what), targets);
}

constexpr GradientRule kRules[]{
    {"Attention", attention, nullptr, 1},
};

} // namespace

std::span<const GradientRule> attention_gradients() {
  return kRules;
}

} // namespace monet

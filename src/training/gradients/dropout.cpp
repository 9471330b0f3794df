#include "training/gradients/rules.hpp"

namespace monet {

namespace {

/// dX = dY * mask / (1 - ratio); the mask is one boolean an element, written by the forward
/// operator.
void dropout(GradientContext& context) {
  GradientContext::Emit what{"DropoutGrad", kMonetDomain, {context.dy(), context.output(1)}};
  what.attributes.set("ratio", dropout_ratio(context.graph(), context.op()));
  context.emit(std::move(what), {0});
}

constexpr GradientRule kRules[]{{"Dropout", dropout, nullptr, 1}};

} // namespace

std::span<const GradientRule> dropout_gradients() {
  return kRules;
}

} // namespace monet

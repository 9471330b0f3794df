// Operators whose results are chosen by data, and sources of random numbers, which no gradient
// passes: their shapes and seeds are all that they take from their inputs.
#include "training/gradients/rules.hpp"

namespace monet {

namespace {

/// dY goes back to where the values came from.
void top_k(GradientContext& context) {
  GradientContext::Emit what{"GatherElementsGrad", kMonetDomain, {context.dy(), context.output(1)}};
  what.attributes.set("axis", context.op().attributes.integer("axis", -1));
  context.emit(std::move(what), {0});
}
std::string refuse_top_k(const Graph&, const Operator& op) {
  const bool places = op.outputs.size() > 1 && op.outputs[1];
  return places ? std::string() : "TopK has a gradient only if it also writes the indices";
}

/// Reversed twice, a sequence is itself.
void reverse_sequence(GradientContext& context) {
  context.emit({"ReverseSequence", "", {context.dy(), context.input(1)}, context.op().attributes},
               {0});
}

void same(GradientContext& context) {
  context.give(0, context.dy());
}

constexpr GradientRule kRules[]{
    {"TopK", top_k, refuse_top_k, 1},
    {"ReverseSequence", reverse_sequence},
    {"CastLike", same},
    {"Bernoulli"},
    {"RandomNormalLike"},
    {"RandomUniformLike"},
    {"EyeLike"},
};

} // namespace

std::span<const GradientRule> selection_gradients() {
  return kRules;
}

} // namespace monet

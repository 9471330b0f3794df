// The table of gradient rules by operator type; differentiate.cpp looks rules up here.
#include "training_graph/gradients/rules.hpp"
#include "workload/shared/operators.hpp"

#include "monet/training_graph/training.hpp"

#include <array>
#include <map>

namespace monet {

namespace {

constexpr std::array kFamilies{
    &elementwise_gradients, &broadcast_gradients,    &linear_gradients,   &normalization_gradients,
    &pooling_gradients,     &view_gradients,         &indexing_gradients, &reduction_gradients,
    &movement_gradients,    &quantization_gradients, &loss_gradients,
};

/// Rules by operator type.
const std::map<std::string_view, GradientRule>& by_type() {
  static const auto rules = [] {
    std::map<std::string_view, GradientRule> made;
    for (const auto family : kFamilies) {
      for (const GradientRule& rule : family())
        made.emplace(rule.op_type, rule);
    }
    return made;
  }();
  return rules;
}

} // namespace

const GradientRule* find_gradient_rule(const Operator& op) {
  if (!op.domain.empty() && op.domain != "ai.onnx" && op.domain != kMonetDomain)
    return nullptr;
  const auto found = by_type().find(op.op_type);
  return found == by_type().end() ? nullptr : &found->second;
}

std::vector<std::string> differentiable_operators() {
  std::vector<std::string> names;
  for (const auto& [op_type, rule] : by_type()) {
    if (rule.emit)
      names.emplace_back(op_type);
  }
  return names;
}

GradientSupport gradient_support(std::string_view domain, std::string_view op_type) {
  if (has_trait(op_type, OperatorRow::kDiscrete))
    return GradientSupport::stops;
  const GradientRule* rule =
      find_gradient_rule({.op_type = op_type, .domain = std::string(domain)});
  if (rule == nullptr)
    return GradientSupport::no;
  return rule->emit == nullptr ? GradientSupport::stops : GradientSupport::yes;
}

} // namespace monet

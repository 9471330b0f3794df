#include "training/gradients/rules.hpp"

#include <algorithm>
#include <array>
#include <unordered_map>

namespace monet {

namespace {

using Family = std::span<const GradientRule> (*)();
constexpr std::array kFamilies{
    Family{elementwise_gradients},   Family{broadcast_gradients}, Family{linear_gradients},
    Family{normalization_gradients}, Family{pooling_gradients},   Family{view_gradients},
    Family{indexing_gradients},      Family{reduction_gradients}, Family{movement_gradients},
};

/// The first rule of every operator type.
std::unordered_map<std::string_view, const GradientRule*> by_type() {
  std::unordered_map<std::string_view, const GradientRule*> rules;
  for (const Family family : kFamilies) {
    for (const GradientRule& rule : family())
      rules.emplace(rule.op_type, &rule);
  }
  return rules;
}

} // namespace

const GradientRule* find_gradient_rule(const Operator& op) {
  if (!op.domain.empty() && op.domain != "ai.onnx" && op.domain != kMonetDomain)
    return nullptr;
  static const auto rules = by_type();
  const auto found = rules.find(op.op_type);
  return found == rules.end() ? nullptr : found->second;
}

std::vector<std::string> differentiable_operators() {
  std::vector<std::string> names;
  for (const Family family : kFamilies) {
    for (const GradientRule& rule : family()) {
      if (rule.emit)
        names.emplace_back(rule.op_type);
    }
  }
  std::sort(names.begin(), names.end());
  return names;
}

} // namespace monet

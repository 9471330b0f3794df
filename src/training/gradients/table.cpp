#include "training/gradients/rules.hpp"

#include <algorithm>
#include <array>

namespace monet {

namespace {

using Family = std::span<const GradientRule> (*)();
constexpr std::array kFamilies{
    Family{elementwise_gradients}, Family{linear_gradients},    Family{normalization_gradients},
    Family{pooling_gradients},     Family{softmax_gradients},   Family{view_gradients},
    Family{indexing_gradients},    Family{reduction_gradients}, Family{dropout_gradients},
};

} // namespace

const GradientRule* find_gradient_rule(const Operator& op) {
  if (!op.domain.empty() && op.domain != "ai.onnx" && op.domain != kMonetDomain)
    return nullptr;
  for (const Family family : kFamilies) {
    for (const GradientRule& rule : family()) {
      if (rule.op_type == op.op_type)
        return &rule;
    }
  }
  return nullptr;
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

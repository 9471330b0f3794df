#include "monet/training/gradient_support.hpp"

#include "training/gradients/rules.hpp"

#include <algorithm>
#include <array>

namespace monet {

namespace {

/// Their results are indices or truth values.
constexpr std::array kDiscrete{"And",    "BitwiseAnd", "BitwiseNot", "BitwiseOr", "BitwiseXor",
                               "ArgMax", "ArgMin",     "Equal",      "Greater",   "GreaterOrEqual",
                               "IsInf",  "IsNaN",      "NonZero",    "Less",      "LessOrEqual",
                               "Not",    "Or",         "Xor"};

} // namespace

GradientSupport gradient_support(std::string_view domain, std::string_view op_type) {
  if (std::find(kDiscrete.begin(), kDiscrete.end(), op_type) != kDiscrete.end())
    return GradientSupport::stops;
  const GradientRule* rule =
      find_gradient_rule({.op_type = std::string(op_type), .domain = std::string(domain)});
  if (rule == nullptr)
    return GradientSupport::no;
  return rule->emit == nullptr ? GradientSupport::stops : GradientSupport::yes;
}

} // namespace monet

// Collects the rules of all operator families and finds an operator's rule; readers and graph
// generators call it to build nests.
#include "workload/operators/contract.hpp"
#include "workload/operators/families.hpp"

#include "monet/base/errors.hpp"

#include <fmt/core.h>

#include <array>

namespace monet {

namespace {

// To add a family, add a line here and a declaration in families.hpp.
constexpr std::array kFamilies{
    &conv_rules,
    &matmul_rules,
    &elementwise_rules,
    &view_rules,
    &copy_rules,
    &conv_transpose_rules,
    &normalization_rules,
    &reduction_rules,
    &pooling_rules,
    &gather_rules,
    &movement_rules,
    &microsoft_rules,
    &mac_grad_rules,
    &elementwise_grad_rules,
    &normalization_grad_rules,
    &indexing_grad_rules,
    &quantization_rules,
    &scaled_cast_rules,
    &loss_rules,
    &ctc_rules,
    &update_rules,
    &reduction_grad_rules,
    &group_normalization_rules,
    &resize_rules,
    &sampling_rules,
    &einsum_rules,
    &attention_rules,
    &collective_rules,
};

std::vector<OperatorRule> collect() {
  std::vector<OperatorRule> rules;
  for (const auto family : kFamilies) {
    const auto members = family();
    rules.insert(rules.end(), members.begin(), members.end());
  }
  sort_by_operator(rules, "two rules for one operator");
  return rules;
}

} // namespace

const std::vector<OperatorRule>& all_rules() {
  static const std::vector<OperatorRule> rules = collect();
  return rules;
}

const OperatorRule* find_rule(std::string_view domain, std::string_view op_type) {
  return find_by_operator(all_rules(), domain, op_type);
}

bool has_view_rule(const Operator& op) {
  const OperatorRule* rule = find_rule(op.domain, op.op_type);
  return rule != nullptr && rule->is_view;
}

void build_nest(Graph& graph, OpId id) {
  Operator& op = graph.op(id);
  const OperatorRule* rule = find_rule(op.domain, op.op_type);
  internal_check(rule != nullptr,
                 fmt::format("no loop nest for '{}' of domain '{}'", op.op_type, op.domain));
  check_contract(graph, op);
  check_relations(graph, op);
  if (rule->build == nullptr)
    return;
  op.nest = rule->build(graph, op);
  try {
    static_cast<void>(iterations(op.nest));
  } catch (const InputError&) {
    throw InputError(location_of(graph, op), "the number of iterations overflows 64 bits");
  }
}

SourceLoc location_of(const Graph& graph, const Operator& op, std::string_view detail) {
  const std::string domain = op.domain.empty() ? "" : op.domain + ".";
  std::string element = fmt::format("node '{}' ({}{})", op.name, domain, op.op_type);
  if (!detail.empty())
    element += fmt::format(", {}", detail);
  return {graph.origin, 0, 0, element};
}

} // namespace monet

// Table helpers for families of operators, and their lists of rules, which registry.cpp collects.
#pragma once

#include "workload/operators/nest_builder.hpp"
#include "workload/shared/operators.hpp"

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

namespace monet {

/// Sort key of table rows: the operator's domain and type.
constexpr auto kOperatorOf = [](const auto& row) { return std::pair(row.domain, row.op_type); };

/// Sorts rows by operator; throws InternalError with message `twice` if two rows share an operator.
template <class Row>
void sort_by_operator(std::vector<Row>& rows, std::string_view twice) {
  std::ranges::sort(rows, {}, kOperatorOf);
  internal_check(std::ranges::adjacent_find(rows, {}, kOperatorOf) == rows.end(), twice);
}

/// Row of an operator in a sorted table; null if it is missing.
template <class Table>
auto find_by_operator(const Table& table, std::string_view domain, std::string_view op_type) {
  const std::pair wanted(domain, op_type);
  const auto at = std::ranges::lower_bound(table, wanted, {}, kOperatorOf);
  return at != std::end(table) && kOperatorOf(*at) == wanted ? &*at : nullptr;
}

/// Row of an operator type in a table; the row must exist.
template <class Table>
const auto& row_of(const Table& table, const Operator& op) {
  return *std::ranges::find_if(table, [&](const auto& row) { return row.op_type == op.op_type; });
}

/// Rules for every row of a table.
template <class Table>
std::vector<OperatorRule> rules_of(const Table& table, std::string_view domain, NestBuilder build) {
  std::vector<OperatorRule> rules;
  for (const auto& row : table)
    rules.push_back({domain, row.op_type, build});
  return rules;
}

std::vector<OperatorRule> conv_rules();
std::vector<OperatorRule> matmul_rules();
std::vector<OperatorRule> elementwise_rules();
std::vector<OperatorRule> view_rules();
std::vector<OperatorRule> copy_rules();
std::vector<OperatorRule> conv_transpose_rules();
std::vector<OperatorRule> normalization_rules();
std::vector<OperatorRule> group_normalization_rules();
std::vector<OperatorRule> reduction_rules();
std::vector<OperatorRule> reduction_grad_rules();
std::vector<OperatorRule> pooling_rules();
std::vector<OperatorRule> quantization_rules();
std::vector<OperatorRule> scaled_cast_rules();
std::vector<OperatorRule> gather_rules();
std::vector<OperatorRule> movement_rules();
std::vector<OperatorRule> resize_rules();
std::vector<OperatorRule> sampling_rules();
std::vector<OperatorRule> einsum_rules();
std::vector<OperatorRule> attention_rules();
std::vector<OperatorRule> microsoft_rules();
std::vector<OperatorRule> mac_grad_rules();
std::vector<OperatorRule> elementwise_grad_rules();
std::vector<OperatorRule> normalization_grad_rules();
std::vector<OperatorRule> indexing_grad_rules();
std::vector<OperatorRule> loss_rules();
std::vector<OperatorRule> ctc_rules();
std::vector<OperatorRule> update_rules();
std::vector<OperatorRule> collective_rules();

} // namespace monet

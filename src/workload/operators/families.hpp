// Every operator family gives its rules here; registry.cpp lists them all.
#pragma once

#include "monet/workload/operators.hpp"

#include <algorithm>
#include <iterator>
#include <string_view>
#include <vector>

namespace monet {

/// The row of a table for an operator's type. It must be there.
template <class Table>
const auto& row_of(const Table& table, const Operator& op) {
  return *std::ranges::find_if(table, [&](const auto& row) { return row.op_type == op.op_type; });
}

/// A rule for every row of a table.
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

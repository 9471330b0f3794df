// Every operator family gives its rules here; registry.cpp lists them all.
#pragma once

#include "monet/workload/operators.hpp"

#include <algorithm>
#include <iterator>
#include <span>
#include <string_view>
#include <vector>

namespace monet {

/// The row of a table for an operator's type. It must be there.
template <class Table>
const auto& row_of(const Table& table, const Operator& op) {
  return *std::find_if(std::begin(table), std::end(table),
                       [&](const auto& row) { return row.op_type == op.op_type; });
}

/// A rule for every row of a table.
template <class Table>
std::vector<OperatorRule> rules_of(const Table& table, std::string_view domain, NestBuilder build) {
  std::vector<OperatorRule> rules;
  for (const auto& row : table)
    rules.push_back({domain, row.op_type, build});
  return rules;
}

std::span<const OperatorRule> conv_rules();
std::span<const OperatorRule> matmul_rules();
std::span<const OperatorRule> elementwise_rules();
std::span<const OperatorRule> view_rules();
std::span<const OperatorRule> copy_rules();
std::span<const OperatorRule> conv_transpose_rules();
std::span<const OperatorRule> normalization_rules();
std::span<const OperatorRule> group_normalization_rules();
std::span<const OperatorRule> reduction_rules();
std::span<const OperatorRule> reduction_grad_rules();
std::span<const OperatorRule> pooling_rules();
std::span<const OperatorRule> gather_rules();
std::span<const OperatorRule> movement_rules();
std::span<const OperatorRule> resize_rules();
std::span<const OperatorRule> einsum_rules();
std::span<const OperatorRule> attention_rules();
std::span<const OperatorRule> microsoft_rules();
std::span<const OperatorRule> mac_grad_rules();
std::span<const OperatorRule> elementwise_grad_rules();
std::span<const OperatorRule> normalization_grad_rules();
std::span<const OperatorRule> indexing_grad_rules();
std::span<const OperatorRule> loss_rules();
std::span<const OperatorRule> update_rules();

} // namespace monet

// Every operator family gives its rules here; registry.cpp lists them all.
#pragma once

#include "monet/workload/operators.hpp"

#include <span>

namespace monet {

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

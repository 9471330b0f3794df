// What an operator computes: one kernel per operator type, generic in the real type. A family of
// kernels is a file here and a line in kernel_table.cpp; read kernels/rows.cpp for the pattern.
#pragma once

#include "execute/walk/context.hpp"

#include <span>
#include <string_view>

namespace monet {

struct KernelEntry {
  std::string_view domain; ///< "" = ai.onnx
  std::string_view op_type;
  void (*fp64)(KernelContext<double>& context);
  void (*fp32)(KernelContext<float>& context);
};

/// An entry from a generic lambda without captures: such a type can be made out of nothing, so that
/// the entry is a pair of plain function pointers.
template <class F>
constexpr KernelEntry kernel(std::string_view domain, std::string_view op_type, F) {
  return {domain, op_type, [](KernelContext<double>& context) { F{}(context); },
          [](KernelContext<float>& context) { F{}(context); }};
}

/// The kernel of an operator type, or null.
const KernelEntry* find_kernel(const Operator& op);

std::span<const KernelEntry> product_kernels();
std::span<const KernelEntry> pointwise_kernels();
std::span<const KernelEntry> activation_kernels();
std::span<const KernelEntry> row_kernels();
std::span<const KernelEntry> reduction_kernels();
std::span<const KernelEntry> normalization_kernels();
std::span<const KernelEntry> loss_kernels();
std::span<const KernelEntry> movement_kernels();
std::span<const KernelEntry> pooling_kernels();
std::span<const KernelEntry> parts_kernels();
std::span<const KernelEntry> indexing_kernels();
std::span<const KernelEntry> resize_kernels();
std::span<const KernelEntry> masked_kernels();
std::span<const KernelEntry> attention_kernels();
std::span<const KernelEntry> update_kernels();
std::span<const KernelEntry> microsoft_kernels();
std::span<const KernelEntry> random_kernels();

} // namespace monet

// What an operator computes: one kernel per operator type, generic in the real type. A family of
// kernels is a file here and a line in kernel_table.cpp; read kernels_rows.cpp for the pattern.
#pragma once

#include "execute/context.hpp"

#include <span>
#include <string_view>

namespace monet {

struct KernelEntry {
  std::string_view domain; ///< "" = ai.onnx
  std::string_view op_type;
  void (*fp64)(KernelContext<double>& context);
  void (*fp32)(KernelContext<float>& context);
};

/// An entry from a type with `template <class Real> static void run(KernelContext<Real>&)`.
template <class Kernel>
constexpr KernelEntry kernel(std::string_view domain, std::string_view op_type) {
  return {domain, op_type, &Kernel::template run<double>, &Kernel::template run<float>};
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
std::span<const KernelEntry> selection_kernels();

} // namespace monet

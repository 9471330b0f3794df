// What an operator computes: one kernel per operator type, generic in the real type. A family of
// kernels is a file here and a line in kernel_table.cpp; read kernels/rows.cpp for the pattern.
#pragma once

#include "execute/walk/context.hpp"

#include <string_view>
#include <vector>

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

std::vector<KernelEntry> product_kernels();
std::vector<KernelEntry> pointwise_kernels();
std::vector<KernelEntry> activation_kernels();
std::vector<KernelEntry> row_kernels();
std::vector<KernelEntry> reduction_kernels();
std::vector<KernelEntry> normalization_kernels();
std::vector<KernelEntry> loss_kernels();
std::vector<KernelEntry> ctc_kernels();
std::vector<KernelEntry> movement_kernels();
std::vector<KernelEntry> pooling_kernels();
std::vector<KernelEntry> parts_kernels();
std::vector<KernelEntry> indexing_kernels();
std::vector<KernelEntry> resize_kernels();
std::vector<KernelEntry> grid_sample_kernels();
std::vector<KernelEntry> roi_align_kernels();
std::vector<KernelEntry> masked_kernels();
std::vector<KernelEntry> quantization_kernels();
std::vector<KernelEntry> scaled_cast_kernels();
std::vector<KernelEntry> attention_kernels();
std::vector<KernelEntry> update_kernels();
std::vector<KernelEntry> microsoft_kernels();
std::vector<KernelEntry> random_kernels();

} // namespace monet

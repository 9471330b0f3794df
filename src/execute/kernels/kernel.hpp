// Kernels that compute operators: one per operator type, generic in the real type. A family of
// kernels is a file here and a line in table.cpp; read kernels/rows.cpp for the pattern.
#pragma once

#include "execute/walk/context.hpp"

#include <array>
#include <string_view>

namespace monet {

/// A number that a kernel takes from its operator.
struct NumberAttribute {
  std::string_view name;
  double fallback = 0;
};

struct KernelEntry {
  std::string_view domain; ///< "" = ai.onnx
  OpType op_type;
  void (*fp64)(KernelContext<double>& context);
  void (*fp32)(KernelContext<float>& context);
  std::array<NumberAttribute, 2> attributes{};
};

using KernelTable = std::span<const KernelEntry>;

/// A lambda without captures: such a type can be made out of nothing.
template <class F>
concept Stateless = std::is_empty_v<F>;

/// An entry from a generic lambda: a pair of plain function pointers.
template <Stateless F>
constexpr KernelEntry kernel(std::string_view domain, OpType op_type, F) {
  return {domain,
          op_type,
          [](KernelContext<double>& context) { F{}(context); },
          [](KernelContext<float>& context) { F{}(context); },
          {}};
}

/// The kernel of an operator type, or null.
const KernelEntry* find_kernel(const Operator& op);

/// Values of the attributes of the operator's kernel.
std::array<double, 2> attributes_of(const Operator& op);

KernelTable product_kernels();
KernelTable pointwise_kernels();
KernelTable activation_kernels();
KernelTable row_kernels();
KernelTable reduction_kernels();
KernelTable normalization_kernels();
KernelTable loss_kernels();
KernelTable ctc_kernels();
KernelTable movement_kernels();
KernelTable pooling_kernels();
KernelTable parts_kernels();
KernelTable indexing_kernels();
KernelTable resize_kernels();
KernelTable grid_sample_kernels();
KernelTable roi_align_kernels();
KernelTable masked_kernels();
KernelTable quantization_kernels();
KernelTable scaled_cast_kernels();
KernelTable attention_kernels();
KernelTable update_kernels();
KernelTable microsoft_kernels();
KernelTable random_kernels();

} // namespace monet

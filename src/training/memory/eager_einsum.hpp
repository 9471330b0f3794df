// How PyTorch 1.13 multiplies two tensors by an equation: both are permuted and reshaped to stacks
// of matrices, which copies what does not lie in memory like that.
#pragma once

#include "training/memory/eager_layout.hpp"

#include <array>

namespace monet {

/// An operand as it is permuted, and the three axes that its axes are joined to.
struct EinsumFactor {
  std::vector<std::int64_t> shape;
  std::vector<std::int64_t> strides;
  std::vector<std::int64_t> stack; ///< [batch, rows, summed], or [batch, summed, columns]
};

struct EinsumProduct {
  std::array<EinsumFactor, 2> factors;
  std::vector<std::int64_t> result_strides;
};

/// Nullopt for what is no such product: other numbers of operands, nothing summed, letters that are
/// summed in one operand alone.
std::optional<EinsumProduct> einsum_product(const Graph& graph, const Operator& op,
                                            EagerLayouts& layouts);

} // namespace monet

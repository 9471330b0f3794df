// Factors of products: PyTorch 1.13 makes stacks of matrices of them, which copies what does not
// lie in memory like that.
#pragma once

#include "training/memory/eager_kept.hpp"

#include <vector>

namespace monet {

/// Of a MatMul; a factor is kept when the other one requires a gradient.
void keep_factors(EagerKept& kept, const Graph& graph, const Operator& op,
                  const std::vector<bool>& requires_grad);
/// Of an Einsum; false for what is no product of two stacks of matrices.
bool keep_einsum(EagerKept& kept, const Graph& graph, const Operator& op,
                 const std::vector<bool>& requires_grad);

} // namespace monet

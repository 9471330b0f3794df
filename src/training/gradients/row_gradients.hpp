// Gradients of embeddings that hold only the rows that were read, as nn.Embedding(sparse=True) has
// them.
#pragma once

#include "training/gradients/differentiate.hpp"

namespace monet {

/// By TensorId: tables that the patterns name and of which look-ups along the first axis are the
/// only readers. InputError for a pattern that names none.
std::vector<bool> tables_of_rows(const Graph& forward, const GradientNeeds& needs,
                                 const std::vector<std::string>& patterns);

/// The parts as one gradient in which no row comes twice (PyTorch's coalesce()): `values` [n, ...]
/// are sums, `rows` [n] ascending. n is the number of all indices; what is left over of it is zero,
/// its rows outside of the table.
RowGradient coalesce(StepBuilder& builder, TensorId table, const std::vector<RowGradient>& parts);

} // namespace monet

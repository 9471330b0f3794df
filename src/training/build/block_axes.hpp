// Along which axes of its operands a product adds up: there a block that shares a scale has to lie,
// so that the scale can be taken out of the sum.
#pragma once

#include "monet/workload/graph.hpp"

#include <functional>
#include <vector>

namespace monet {

/// A factor of a product.
struct SummedFactor {
  std::size_t operand = 0; ///< of the nest
  TensorId stored;         ///< what it is read from, behind its views
  int axis = -1;           ///< of `stored`, counted from the last
};

/// The factors of an operator's products of which `counts(stored)` holds, each with the axis that
/// blocks lie along: where all of them have an axis along which one loop of the sum goes, and which
/// it shares with no finer loop of the result, that of the loop with the longest runs, the last of
/// equals; else each its own longest; where there is none (the image rows that a convolution's
/// window slides over), the axis with the longest loop of the sum. No factor without such a loop.
std::vector<SummedFactor> summed_factors(const Graph& graph, const Operator& op,
                                         const std::function<bool(TensorId)>& counts);

} // namespace monet

// O[...] += A[...] * B[...] over an affine nest, fast enough for whole networks.
#pragma once

#include "monet/workload/graph.hpp"

#include <vector>

namespace monet {

/// Operands 0, 1 and 2 of the nest are O, A and B. Every output element adds its products one after
/// the other in an order that depends on the nest alone. Accesses outside a tensor are left out.
/// InternalError where numbers are not as many as their tensor's elements.
template <class Real>
void multiply_accumulate(const Graph& graph, const LoopNest& nest, std::vector<Real>& output,
                         const std::vector<Real>& left, const std::vector<Real>& right);

extern template void multiply_accumulate<double>(const Graph&, const LoopNest&,
                                                 std::vector<double>&, const std::vector<double>&,
                                                 const std::vector<double>&);
extern template void multiply_accumulate<float>(const Graph&, const LoopNest&, std::vector<float>&,
                                                const std::vector<float>&,
                                                const std::vector<float>&);

} // namespace monet

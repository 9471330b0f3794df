// O[...] += A[...] * B[...] over an affine nest, fast enough for whole networks.
#pragma once

#include "monet/numerics/mac.hpp"
#include "monet/workload/graph.hpp"

#include <vector>

namespace monet {

struct GradientRounding;

/// Operands 0, 1 and 2 of the nest are O, A and B. Every output element adds its products one after
/// the other in an order that depends on the nest alone, whatever the number of threads. Accesses
/// outside a tensor are left out. InternalError where numbers are not as many as their tensor's
/// elements.
template <class Real>
void multiply_accumulate(const Graph& graph, const LoopNest& nest, std::vector<Real>& output,
                         const std::vector<Real>& left, const std::vector<Real>& right,
                         int jobs = 1);

extern template void multiply_accumulate<double>(const Graph&, const LoopNest&,
                                                 std::vector<double>&, const std::vector<double>&,
                                                 const std::vector<double>&, int);
extern template void multiply_accumulate<float>(const Graph&, const LoopNest&, std::vector<float>&,
                                                const std::vector<float>&,
                                                const std::vector<float>&, int);

/// The same by an emulated unit, in the same order; `output` is 0 before. Chunks of products that
/// are added exactly are neighbours in the longest reduced loop that no bound cuts. Operands that are gradients and are
/// converted count in `gradients`.
void emulate_product(const Graph& graph, const LoopNest& nest, std::vector<float>& output,
                     const std::vector<float>& left, const std::vector<float>& right,
                     const Mac& unit, int jobs = 1, Instructions instructions = Instructions::best,
                     GradientRounding* gradients = nullptr);

/// InternalError where numbers are not as many as elements of O, A and B.
void check_factors(const Graph& graph, const LoopNest& nest, std::size_t output, std::size_t left,
                   std::size_t right);

} // namespace monet

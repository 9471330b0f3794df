// O[...] += A[...] * B[...] over an affine nest, fast enough for whole networks.
#pragma once

#include "monet/numerics/mac.hpp"
#include "monet/workload/graph.hpp"

#include <vector>

namespace monet {

struct GradientRounding;

/// Operands 0, 1 and 2 of the nest are O, A and B. Every output element adds its products one after
/// the other in an order that depends on the nest alone, whatever the number of threads. Accesses
/// outside a tensor are skipped. InternalError if a size differs from its tensor's number of
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

/// How a product is emulated. Results depend on the unit alone.
struct Emulation {
  const Mac& unit;
  int jobs = 1; ///< threads
  Instructions instructions = Instructions::best;
  GradientRounding* gradients = nullptr; ///< counts converted operands that are gradients
};

/// Computes the product with an emulated unit, in the order of the plain product; `output` must be
/// zero. Products of a chunk that is added exactly are neighbours in the longest reduced loop that
/// no bound cuts.
void emulate_product(const Graph& graph, const LoopNest& nest, std::vector<float>& output,
                     const std::vector<float>& left, const std::vector<float>& right,
                     const Emulation& emulation);

/// InternalError if the sizes differ from the numbers of elements of O, A and B.
void check_factors(const Graph& graph, const LoopNest& nest, std::size_t output, std::size_t left,
                   std::size_t right);

} // namespace monet

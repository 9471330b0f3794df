// solve_chain(): rematerialisation of a chain of layers by dynamic programming over its segments,
// each for many amounts of memory at once. There are at most O(n^3) pairs of a segment and a split
// position. With memory for tens of layers, segments of a few hundred layers and a few amounts of
// memory suffice; 1,000 layers take a fraction of a second.
#pragma once

#include "monet/optimise/recompute_problem.hpp"
#include "monet/optimise/search.hpp"

#include <cstdint>
#include <span>

namespace monet {

/// A layer of a chain: costs of its two passes and sizes of its tensors.
struct ChainLayer {
  std::int64_t forward_cost = 0;
  std::int64_t backward_cost = 0;
  std::int64_t bytes = 0; ///< size of the layer's output
  /// Size of tensors that only the layer's own backward pass reads; every forward run produces
  /// them.
  std::int64_t tape_bytes = 0;
  std::int64_t gradient_bytes = 0; ///< size of the gradient of the layer's output
};

/// Makes the problem of a chain's training step. Operators 0..n-1 are the forward passes, n..2n-1
/// the backward passes from the last layer to the first. A backward pass reads the layer's input,
/// output, tape and output gradient, and produces the input gradient. The chain's input and the
/// gradient of the last output are given and cost nothing.
RecomputeProblem chain_problem(std::span<const ChainLayer> layers);

/// Finds the cheapest persistent plan, in which a kept buffer stays until its backward pass has run
/// (Beaumont, Eyraud-Dubois, Herrmann, Joly, Shilova 2019). Memory is discretised into `levels`
/// equal parts of the budget, with sizes rounded up. The plan is thus within the budget, and it is
/// the cheapest if all sizes are multiples of a part. Plans that keep a buffer only for a while are
/// not in this space. The bound is therefore the cost of running everything once. `infeasible`
/// means that there is no persistent plan in whole parts.
RecomputeResult solve_chain(std::span<const ChainLayer> layers, std::int64_t budget,
                            std::size_t levels, const SearchControl& control = {});

} // namespace monet

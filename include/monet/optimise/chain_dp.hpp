// Rematerialisation of a chain of layers by dynamic programming over its parts, each for many
// amounts of memory at once. At most O(n^3) parts and places to split them; with memory for tens of
// layers, parts of a few hundred layers and a few amounts of memory are enough, and 1,000 layers
// take a fraction of a second.
#pragma once

#include "monet/optimise/recompute_problem.hpp"
#include "monet/optimise/search.hpp"

#include <cstdint>
#include <span>

namespace monet {

struct ChainLayer {
  std::int64_t forward_cost = 0;
  std::int64_t backward_cost = 0;
  std::int64_t bytes = 0;          ///< of its output
  std::int64_t tape_bytes = 0;     ///< of what only its own backward reads; made by any forward run
  std::int64_t gradient_bytes = 0; ///< of its output's gradient
};

/// The chain's step: operators 0..n-1 are the forward ones, n..2n-1 the backward ones from the last
/// layer to the first. Backward reads the layer's input, output, tape and its output's gradient,
/// and makes that of its input; the gradient of the last output and the chain's input are given and
/// cost nothing.
RecomputeProblem chain_problem(std::span<const ChainLayer> layers);

/// The cheapest persistent plan: a buffer kept stays until its backward part has run (Beaumont,
/// Eyraud-Dubois, Herrmann, Joly, Shilova 2019). Memory is counted in `levels` equal parts of the
/// budget, sizes rounded up: the plan holds for the budget, and is the cheapest one where sizes are
/// multiples of a part. Plans that keep a buffer for a while only are not in this space; bound is
/// therefore the cost of running everything once. `infeasible`: no persistent plan, in whole parts.
RecomputeResult solve_chain(std::span<const ChainLayer> layers, std::int64_t budget,
                            std::size_t levels, const SearchControl& control = {});

} // namespace monet

// Costs of a whole network's backward pass, pair by pair and by several techniques, and of its
// forward pass on the same machine.
#pragma once

#include "monet/core_cost/backward.hpp"
#include "monet/core_cost/gemms.hpp"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace monet {

/// Settings for the evaluation of every pair.
struct BackwardPlan {
  NpuMachine machine;
  BackwardOptions options;
  std::vector<Technique> techniques;
  /// Scheme by which pairs are partitioned; nullopt: the fastest one for each pair. Several cores
  /// share every pair, so `none` is invalid for them.
  std::optional<PartitionScheme> scheme = PartitionScheme::none;
  std::int64_t max_parts = 8; ///< maximum number of parts in sequence, on one core
  int jobs = 1;               ///< threads; the results do not depend on it
};

/// Costs of one pair by technique, with its lower bounds.
struct BackwardLayer {
  GemmPair pair;
  std::vector<PartitionedCost> costs; ///< costs by technique, in the plan's order
  BackwardBound bound;
};

/// Evaluates a network's pairs; equal pairs are solved once. `tell`, if not empty, is called from
/// any thread with the numbers of finished and of all different pairs. Throws InfeasibleError
/// naming the layer.
std::vector<BackwardLayer>
map_backward(const GemmNetwork& network, const BackwardPlan& plan,
             const std::function<void(std::int64_t, std::int64_t)>& tell = {});

/// Cost of a pair's forward pass in its usual order. Each of several cores has a part of the rows,
/// and reads all of W.
PartitionedCost forward_cost(const GemmPair& pair, const NpuMachine& machine,
                             const BackwardOptions& options);

/// Traffic of an update after the pair, in bits and for all repeats: dW, weights and state are
/// read, weights and state written.
std::int64_t update_bits(const GemmPair& pair, const BackwardOptions& options);

/// Function for TileTiming::core: cycles of a product of r x t by t x c elements according to
/// core_cost(), on a core whose memories hold all of it. Thread-safe.
std::function<std::int64_t(std::int64_t, std::int64_t, std::int64_t)>
core_tile_cycles(const Core& core, const BackwardOptions& options);

} // namespace monet

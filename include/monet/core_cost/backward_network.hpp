// The backward pass of a whole network, pair by pair, by several techniques; and its forward pass
// on the same machine.
#pragma once

#include "monet/core_cost/backward.hpp"
#include "monet/core_cost/gemms.hpp"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace monet {

/// What is asked of every pair.
struct BackwardPlan {
  NpuMachine machine;
  BackwardOptions options;
  std::vector<Technique> techniques;
  /// How pairs are cut; nullopt: each as is fastest. Several cores share every pair, so there it is
  /// not `none`.
  std::optional<PartitionScheme> scheme = PartitionScheme::none;
  std::int64_t max_parts = 8; ///< over time, on one core
  int jobs = 1;               ///< threads; results do not depend on them
};

struct BackwardLayer {
  GemmPair pair;
  std::vector<PartitionedCost> costs; ///< by technique, in the plan's order
  BackwardBound bound;
};

/// Equal pairs are solved once. `tell`, if not empty, hears from any thread how many of how many
/// different ones are done. InfeasibleError names the layer.
std::vector<BackwardLayer>
map_backward(const GemmNetwork& network, const BackwardPlan& plan,
             const std::function<void(std::int64_t, std::int64_t)>& tell = {});

/// The forward pass in that order; on several cores each has a part of the rows, and reads all of
/// W.
PartitionedCost forward_cost(const GemmPair& pair, const NpuMachine& machine,
                             const BackwardOptions& options);

/// Bits that an update after the pair reads and writes: dW, weights and state read, weights and
/// state written, of all repeats.
std::int64_t update_bits(const GemmPair& pair, const BackwardOptions& options);

/// For TileTiming::core: cycles of a product of r x t by t x c elements on the core, whose memories
/// hold all of it, as core_cost() has them. May be asked from several threads.
std::function<std::int64_t(std::int64_t, std::int64_t, std::int64_t)>
core_tile_cycles(const Core& core, const BackwardOptions& options);

} // namespace monet

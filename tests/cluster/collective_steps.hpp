// The step lists of collectives, for the simulation.
#pragma once

#include "cluster/collective_simulation.hpp"

#include <cstddef>
#include <vector>

namespace monet::test {

struct Transfer {
  std::size_t from = 0; ///< ranks
  std::size_t to = 0;
  std::vector<std::size_t> blocks;
  bool reduces = false;     ///< the receiver adds; otherwise it takes what comes
  std::size_t priority = 0; ///< lower first, where several wait for a port
};

/// Threads work beside each other; a thread's steps one after another. A transfer stands in one
/// step of its sender and one of its receiver.
struct Program {
  std::vector<Transfer> transfers;
  std::vector<std::vector<std::vector<std::size_t>>> threads; ///< [thread][step][transfer]
  std::size_t blocks = 0;
  double block_bytes = 0;
};

/// Block b of a reduce-scatter or an all-gather is rank b's (modulo ranks); of an all-to-all, b is
/// from rank b / ranks to rank b modulo ranks.
Program steps_of(const Cluster& cluster, const std::vector<std::int64_t>& devices,
                 Collective collective, CollectiveAlgorithm algorithm, double bytes,
                 const SimulationOptions& options);

} // namespace monet::test

// Collectives as what ranks do: steps of sends and receives over links, event by event. A witness
// that shares nothing with the closed forms: it moves contributions, and time passes on ports.
#pragma once

#include "cluster/shared/collectives.hpp"

#include <string>
#include <vector>

namespace monet::test {

struct SimulationOptions {
  std::int64_t chunks = 1;
  /// Of a hierarchical collective: what each level does.
  CollectiveAlgorithm inside = CollectiveAlgorithm::ring;
};

struct Simulated {
  double nanoseconds = 0;
  bool finished = false;              ///< no rank waits for ever
  std::string wrong;                  ///< what a rank does not have that it should; empty = nothing
  std::vector<double> bytes_per_tier; ///< sent per rank, the mean
};

/// Sends have rendezvous semantics: one begins when both sides have come to their steps, and the
/// sender's and the receiver's port of the tier are free; it holds them while its bytes go, and
/// arrives a latency later. A step ends with all its transfers. Ranks are the devices in their
/// order, at most 64; broadcasts come from the first.
Simulated simulate(const Cluster& cluster, const std::vector<std::int64_t>& devices,
                   Collective collective, CollectiveAlgorithm algorithm, double bytes,
                   const SimulationOptions& options = {});

} // namespace monet::test

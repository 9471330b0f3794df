// Clusters of a few numbers.
#pragma once

#include "monet/cluster/cluster.hpp"

#include <vector>

namespace monet::test {

struct TierOf {
  std::int64_t size = 1;
  double bandwidth = 1;
  double latency = 0;
  TierTopology topology = TierTopology::switched;
  double oversubscription = 1;
};

inline Cluster cluster_of(const std::vector<TierOf>& tiers) {
  Cluster cluster;
  cluster.devices = 1;
  for (const TierOf& tier : tiers) {
    cluster.tiers.push_back({"tier",
                             tier.size,
                             tier.bandwidth,
                             tier.latency,
                             tier.topology,
                             tier.oversubscription,
                             {}});
    cluster.devices *= tier.size;
  }
  return cluster;
}

} // namespace monet::test

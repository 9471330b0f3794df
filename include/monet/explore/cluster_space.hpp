// Spaces of clusters: a design is devices, the links that join them, and how a training step is
// divided over them. docs/exploration.md describes the file.
#pragma once

#include "monet/cluster/cluster_step.hpp"
#include "monet/explore/space.hpp"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace monet {

/// A design without its strategy.
struct DesignedCluster {
  Cluster cluster;
  ClusterDevice device;
  ClusterWorkload workload;
  std::string network; ///< path; empty: a transformer
};

/// Whether the space has `cluster:`.
bool is_of_clusters(const Space& space);

// Of a space of clusters. InputError where the design's values make none.

/// Equal for designs that differ in `parallel:` alone.
std::string cluster_key(const Space& space, DesignId id);
/// InfeasibleError where the cluster cannot have so many devices.
DesignedCluster cluster_of(const Space& space, DesignId id);
/// `parallel:` with the degree that is `rest`. InfeasibleError where nothing whole is left for it.
ParallelStrategy strategy_of(const Space& space, DesignId id, std::int64_t devices);
/// experiment.yaml for `monet cluster`, and the files it names that are the design's own: name and
/// text. To be written to the folder, which what is named elsewhere is seen from.
std::vector<std::pair<std::string, std::string>> cluster_files(const Space& space, DesignId id,
                                                               const std::string& folder);

} // namespace monet

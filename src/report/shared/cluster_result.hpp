// Results of a step on a cluster as JSON, tables and a trace, and results of the search for its
// parallel strategy.
#pragma once

#include "monet/cluster/cluster_step.hpp"
#include "monet/cluster/planner.hpp"
#include "monet/report/result.hpp"

#include <nlohmann/json_fwd.hpp>

#include <string>

namespace monet {

/// A step on a cluster with its inputs. The pointers are borrowed for writing.
struct ClusterResult {
  std::string name;
  const Cluster* cluster = nullptr; ///< with the number of devices that the step uses
  const ClusterDevice* device = nullptr;
  const ClusterWorkload* workload = nullptr;
  std::string network; ///< file name, if the workload is not a transformer
  const ClusterStep* step = nullptr;
};

/// Maximum number of passes in cluster.json; of a longer step, those that begin first.
inline constexpr std::size_t kMaxListedPasses = 100'000;

/// JSON of a strategy: its keys, and `text`.
nlohmann::ordered_json strategy_json(const ParallelStrategy& strategy);
/// JSON of a step, cluster.json, described by docs/cluster.schema.json.
nlohmann::ordered_json cluster_json(const ClusterResult& result, const Provenance& provenance);

/// Tables for a terminal: time and rates of the step, memory and time of each stage, cost of
/// blocks.
std::string cluster_table(const nlohmann::ordered_json& result);

/// Trace Event JSON for Perfetto. It has a track per stage with its passes, gradients and update,
/// and a track per pair of stages with the data sent.
std::string cluster_trace(const nlohmann::ordered_json& result);

/// Message for a step that does not fit: the stage with the largest shortage, the shortage, and its
/// owners, largest first. Empty if the step fits.
std::string memory_overflow(const ClusterStep& step);

/// Result of `monet optimise parallelism`, described by docs/optimise.schema.json.
struct ParallelismOutcome {
  /// Best step; null if no strategy was found.
  const ClusterResult* best = nullptr;
  /// Result of the planner, with a best strategy.
  const PlannerResult* found = nullptr;
  std::string objective; ///< name of the objective, or "front"
  double seconds = 0;
  std::string repeat; ///< command that models the best strategy, up to its --set
};

/// JSON of a search for a parallel strategy.
nlohmann::ordered_json parallelism_json(const ParallelismOutcome& outcome,
                                        const Provenance& provenance);
/// Table for a terminal: the best strategy, statistics of the others, and the strategies next to it
/// or on the front.
std::string parallelism_table(const nlohmann::ordered_json& result);

} // namespace monet

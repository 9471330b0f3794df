// What a step on a cluster came to, as JSON, tables and a trace; what a search for its strategy
// found.
#pragma once

#include "monet/cluster/cluster_step.hpp"
#include "monet/cluster/planner.hpp"
#include "monet/report/result.hpp"

#include <nlohmann/json_fwd.hpp>

#include <string>

namespace monet {

/// A step with what it is of, borrowed for writing.
struct ClusterResult {
  std::string name;
  const Cluster* cluster = nullptr; ///< with as many devices as were used
  const ClusterDevice* device = nullptr;
  const ClusterWorkload* workload = nullptr;
  std::string network; ///< its file, where the workload is no transformer
  const ClusterStep* step = nullptr;
};

/// Passes that cluster.json lists at most: of a longer step those that begin first.
inline constexpr std::size_t kMaxListedPasses = 100'000;

/// Its keys, and `text`.
nlohmann::ordered_json strategy_json(const ParallelStrategy& strategy);
/// cluster.json, described by docs/cluster.schema.json.
nlohmann::ordered_json cluster_json(const ClusterResult& result, const Provenance& provenance);

/// Time and rates of the step, memory and time of each stage, what blocks cost.
std::string cluster_table(const nlohmann::ordered_json& result);

/// Trace Event JSON for Perfetto: a track a stage with its passes, gradients and update, and one
/// for each pair of stages with what is sent.
std::string cluster_trace(const nlohmann::ordered_json& result);

/// Where the step does not fit: the stage that lacks most, by how much, and its owners, the largest
/// first. Empty where it fits.
std::string memory_overflow(const ClusterStep& step);

/// What `monet optimise parallelism` found: docs/optimise.schema.json.
struct ParallelismOutcome {
  const ClusterResult* best = nullptr;
  const PlannerResult* found = nullptr; ///< with a best
  std::string objective;                ///< or "front"
  double seconds = 0;
  std::string repeat; ///< command that models the best, up to its --set
};

nlohmann::ordered_json parallelism_json(const ParallelismOutcome& outcome,
                                        const Provenance& provenance);
/// The best, what became of the others, and those next to it or on the front.
std::string parallelism_table(const nlohmann::ordered_json& result);

} // namespace monet

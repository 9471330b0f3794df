// What `monet optimise parallelism` found: docs/optimise.schema.json.
#pragma once

#include "monet/cluster/planner.hpp"
#include "monet/report/cluster_result.hpp"

#include <nlohmann/json_fwd.hpp>

#include <string>

namespace monet {

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

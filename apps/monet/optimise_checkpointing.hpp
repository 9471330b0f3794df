// What `monet optimise checkpointing` found, on its way to JSON and to the table.
#pragma once

#include "optimise.hpp"

#include "monet/optimise/checkpoint_search.hpp"

#include <nlohmann/json_fwd.hpp>

#include <optional>
#include <string>
#include <vector>

namespace monet::cli {

struct CheckpointRow {
  std::int64_t budget = 0;
  RecomputeResult result;
  std::optional<CheckpointPoint> point; ///< of the plan; costs in cycles, second in 1/64 pJ
};

struct CheckpointOutcome {
  bool energy = false; ///< what the plans' costs are
  CheckpointMemory memory = CheckpointMemory::peak;
  CheckpointPoint base;            ///< everything stored
  std::int64_t least_possible = 0; ///< no plan needs less memory
  std::vector<CheckpointRow> rows; ///< one for each budget, which fall
  std::optional<std::size_t> chosen;
  std::vector<CheckpointPoint> genetic;
  std::vector<DominatingPoint> dominating; ///< one for each genetic point
  double genetic_seconds = 0;
  double dominating_seconds = 0;

  Certificate certificate() const; ///< of the chosen row
};

/// Rows of the JSON: budgets, the front, what is made again, live bytes by operator.
nlohmann::ordered_json budgets_json(const CheckpointOutcome& outcome);
nlohmann::ordered_json front_json(const CheckpointOutcome& outcome);
nlohmann::ordered_json recomputed_json(const TrainingGraph& step, const CheckpointSpace& space,
                                       const RecomputePlan& plan);
nlohmann::ordered_json memory_json(const std::string& name, const TrainingGraph& step);
nlohmann::ordered_json genetic_json(const CheckpointOutcome& outcome);

std::string checkpoint_table(const CheckpointOutcome& outcome,
                             const nlohmann::ordered_json& compared);

} // namespace monet::cli

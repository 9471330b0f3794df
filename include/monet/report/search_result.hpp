// What `monet optimise` found, as JSON and as the tables it prints: docs/optimise.schema.json.
#pragma once

#include "monet/optimise/allocation.hpp"
#include "monet/optimise/checkpoint_search.hpp"
#include "monet/optimise/fusion.hpp"
#include "monet/optimise/joint.hpp"
#include "monet/optimise/log_search.hpp"

#include <nlohmann/json_fwd.hpp>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace monet {

/// What every result begins with: schema_version, kind, name, objective, best, bound, gap, seconds,
/// interrupted, start, worse_than_start. Numbers that are not known are null.
struct SearchHead {
  std::string kind; ///< "allocation"
  std::string name;
  std::string objective;
  Certificate found;
  double seconds = 0;
};
nlohmann::ordered_json search_json(const SearchHead& head);
/// The line that a table begins with where the answer is worse than what the search began with;
/// else nothing.
std::string worse_text(std::string_view objective, const Certificate& found);
/// A finite number, else null.
nlohmann::ordered_json number_json(double value);
/// "12.3 %", or "unknown" without a bound.
std::string gap_text(const Certificate& found);

/// An allocation search: its answer, and what it is compared with.
struct AllocationOutcome {
  AllocationResult result;
  double plans = 0;            ///< of the space
  StepFigures automatic, best; ///< modelled
  std::size_t random_plans = 0;
  std::optional<AllocationPoint> random; ///< the best of so many
  CoreAllocation allocation;             ///< the best
  bool front = false;
};
nlohmann::ordered_json allocation_json(const SearchHead& head, const AllocationOutcome& outcome,
                                       const Graph& graph, const Chip& chip);
std::string allocation_table(const nlohmann::ordered_json& json, const AllocationOutcome& outcome);

nlohmann::ordered_json fusion_json(const SearchHead& head, const FusionResult& result,
                                   const Graph& graph);
std::string fusion_table(const FusionResult& result, Objective objective);

nlohmann::ordered_json joint_json(const SearchHead& head, const JointResult& result);
std::string joint_table(const nlohmann::ordered_json& json, const Certificate& found);

/// A search for checkpoints: budgets that fall, what each came to, and what was chosen.
struct CheckpointOutcome {
  std::string objective; ///< latency or energy: what the plans' costs are
  std::string method;
  CheckpointMemory memory = CheckpointMemory::peak;
  CheckpointPoint base;            ///< everything stored
  std::int64_t min_possible = 0;   ///< no plan needs less memory
  std::vector<CheckpointRow> rows; ///< one for each budget
  std::optional<std::size_t> chosen;
  std::vector<CheckpointPoint> genetic;
  std::vector<DominatingPoint> dominating; ///< one for each genetic point
  double genetic_seconds = 0;
  double dominating_seconds = 0;

  bool energy() const { return objective == "energy"; }
  Certificate certificate() const; ///< of the chosen row
};
/// Without what the schedule makes of it: `compared`, `memory` and provenance come after.
nlohmann::ordered_json checkpoint_json(const SearchHead& head, const CheckpointOutcome& outcome,
                                       const CheckpointSpace& space, const TrainingGraph& step);
/// Live bytes of the step by owner, operator by operator.
nlohmann::ordered_json live_memory_json(const std::string& name, const TrainingGraph& step);
std::string checkpoint_table(const CheckpointOutcome& outcome,
                             const nlohmann::ordered_json& compared);

/// `rows` has one at least; the last is the answer. Provenance comes after.
nlohmann::ordered_json log_json(const SearchHead& head, const OperatorLog& log,
                                std::span<const LogRow> rows, bool sweep);
std::string log_table(const nlohmann::ordered_json& json, const std::string& name,
                      const OperatorLog& log, std::span<const LogRow> rows);

} // namespace monet

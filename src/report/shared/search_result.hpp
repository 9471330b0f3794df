// Results of `monet optimise` as JSON (docs/optimise.schema.json) and as the tables that it prints.
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

/// Common head of every result: schema_version, kind, name, objective, best, bound, gap, seconds,
/// interrupted, start, worse_than_start. Unknown numbers are null.
struct SearchHead {
  std::string kind; ///< such as "allocation"
  std::string name;
  std::string objective;
  Certificate found;
  double seconds = 0;
};
/// JSON of a result's head.
nlohmann::ordered_json search_json(const SearchHead& head);
/// First line of a table if the result is worse than the start of the search; else empty.
std::string worse_text(std::string_view objective, const Certificate& found);
/// JSON number, or null if the value is not finite.
nlohmann::ordered_json number_json(double value);
/// Text of the gap: "12.3 %", or "unknown" without a bound.
std::string gap_text(const Certificate& found);

/// Result of an allocation search, with results for comparison.
struct AllocationOutcome {
  AllocationResult result;
  double plans = 0; ///< number of plans in the space
  /// Figures of the automatic and the best allocation, from model_step().
  StepFigures automatic, best;
  std::size_t random_plans = 0;
  std::optional<AllocationPoint> random; ///< best of `random_plans` random plans
  CoreAllocation allocation;             ///< best allocation
  bool front = false;
};
/// JSON of an allocation search.
nlohmann::ordered_json allocation_json(const SearchHead& head, const AllocationOutcome& outcome,
                                       const Graph& graph, const Chip& chip);
/// Table of an allocation search, for a terminal.
std::string allocation_table(const nlohmann::ordered_json& json, const AllocationOutcome& outcome);

/// JSON of a search for groups.
nlohmann::ordered_json fusion_json(const SearchHead& head, const FusionResult& result,
                                   const Graph& graph);
/// Table of a search for groups, for a terminal.
std::string fusion_table(const FusionResult& result, Objective objective);

/// JSON of optimise_jointly().
nlohmann::ordered_json joint_json(const SearchHead& head, const JointResult& result);
/// Table of joint_json(), for a terminal.
std::string joint_table(const nlohmann::ordered_json& json, const Certificate& found);

/// Result of a search for checkpoints, with descending budgets and the chosen plan.
struct CheckpointOutcome {
  std::string objective; ///< latency or energy: the cost of the plans
  std::string method;
  CheckpointMemory memory = CheckpointMemory::peak;
  CheckpointPoint base;            ///< plan that stores everything
  std::int64_t min_possible = 0;   ///< lower bound on the memory of any plan
  std::vector<CheckpointRow> rows; ///< one per budget
  /// Index of the chosen row; nullopt: no choice.
  std::optional<std::size_t> chosen;
  std::vector<CheckpointPoint> genetic;
  std::vector<DominatingPoint> dominating; ///< one per genetic point
  double genetic_seconds = 0;
  double dominating_seconds = 0;

  bool energy() const { return objective == "energy"; }
  Certificate certificate() const; ///< of the chosen row
};
/// JSON of a search for checkpoints, without results of the schedule; the caller adds `compared`,
/// `memory` and provenance.
nlohmann::ordered_json checkpoint_json(const SearchHead& head, const CheckpointOutcome& outcome,
                                       const CheckpointSpace& space, const TrainingGraph& step);
/// JSON of the step's live bytes by owner, operator by operator.
nlohmann::ordered_json live_memory_json(const std::string& name, const TrainingGraph& step);
/// Tables of a search for checkpoints, for a terminal.
std::string checkpoint_table(const CheckpointOutcome& outcome,
                             const nlohmann::ordered_json& compared);

/// JSON of a search in a log. `rows` has at least one row; the last is the result. The caller adds
/// provenance.
nlohmann::ordered_json log_json(const SearchHead& head, const OperatorLog& log,
                                std::span<const LogRow> rows, bool sweep);
/// Table of log_json(), for a terminal.
std::string log_table(const nlohmann::ordered_json& json, const std::string& name,
                      const OperatorLog& log, std::span<const LogRow> rows);

} // namespace monet

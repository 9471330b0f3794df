// Results of an exploration as JSON and tables: explore.json, and comparisons of two runs.
#pragma once

#include "monet/explore/explore.hpp"
#include "monet/report/result.hpp"

#include <nlohmann/json_fwd.hpp>

#include <cstdint>
#include <span>
#include <string>
#include <utility>

namespace monet {

/// Selection of the designs of an exploration.
struct ExplorationInfo {
  std::string strategy;
  std::uint64_t seed = 0;
  std::uint64_t budget = 0; ///< maximum number of designs; 0: no limit
  /// Reason why there are fewer designs than the budget; empty if there are not.
  std::string ended_early;
};

/// Maximum number of rows in explore.json, in addition to those of fronts and best designs.
inline constexpr std::size_t kMaxExploreRows = 20'000;

/// JSON of an exploration, explore.json, described by docs/explore.schema.json. It has the space,
/// counts, fronts, the best design of each run and objective, reasons for infeasible designs, and a
/// row per design. Of more than kMaxExploreRows designs it has a sample that depends on the seed
/// alone. Only `seconds` depends on time or the number of workers. Results must be sorted by id, as
/// from explore().
nlohmann::ordered_json explore_json(const Space& space, const ExplorationResult& result,
                                    const ExplorationInfo& info, const Provenance& provenance);

/// Table of an explore.json for a terminal: fronts, best designs and reasons for infeasible ones.
std::string exploration_table(const nlohmann::ordered_json& exploration);

/// One side of a comparison: a run of an explore.json.
struct ComparedRun {
  const nlohmann::ordered_json* exploration = nullptr;
  std::string run;
  std::string label; ///< name for display
};

/// JSON of comparisons of two runs, pair by pair. `fronts` has an entry for every set of objectives
/// that both runs have. An entry has hypervolumes in one box, from the best to the worst of all
/// designs of both runs. It also has the share of each front that designs of the other dominate,
/// and the common designs on both. Per objective it has the best design of each run, and its value
/// in the other. Designs are the same if their parameters have the same names and values. Throws
/// InputError, naming the label, if a run does not exist or there is no common front.
nlohmann::ordered_json comparison_json(std::span<const std::pair<ComparedRun, ComparedRun>> pairs);

/// Table of comparison_json() for a terminal.
std::string comparison_table(const nlohmann::ordered_json& comparison);

} // namespace monet

// What an exploration found, as numbers and tables: explore.json, and two of them side by side.
#pragma once

#include "monet/explore/explore.hpp"
#include "monet/report/result.hpp"

#include <nlohmann/json_fwd.hpp>

#include <cstdint>
#include <span>
#include <string>
#include <utility>

namespace monet {

/// How the designs were chosen.
struct ExplorationInfo {
  std::string strategy;
  std::uint64_t seed = 0;
  std::uint64_t budget = 0; ///< 0: none
  std::string ended_early;  ///< why there are fewer designs than the budget; empty: there are not
};

/// Rows that explore.json holds of larger tables, beside those of fronts and best designs.
inline constexpr std::size_t kMaxExploreRows = 20'000;

/// explore.json, described by docs/explore.schema.json: the space, counts, fronts, the best design
/// of each run and objective, why designs are infeasible, and a row per design (of more than
/// kMaxExploreRows a sample that depends on the seed alone). Nothing in it depends on the number
/// of workers or on time, but `seconds`. Results in order of id, as explore() gives them.
nlohmann::ordered_json explore_json(const Space& space, const ExplorationResult& result,
                                    const ExplorationInfo& info, const Provenance& provenance);

/// Fronts, best designs and reasons of an explore.json for a terminal.
std::string exploration_table(const nlohmann::ordered_json& exploration);

/// One side of a comparison: a run of an explore.json.
struct ComparedRun {
  const nlohmann::ordered_json* exploration = nullptr;
  std::string run;
  std::string label; ///< as it is shown
};

/// Two runs over each other, pair by pair. `fronts`, for every set of objectives that both have:
/// hypervolumes in one box (from the best to the worst of all designs of both), the part of each
/// front that a design of the other dominates, designs that both have on it; and per objective the
/// best of each, and what the other's best comes to here. Designs are the same where their
/// parameters have the same names and values. InputError, naming the label, where there is no such
/// run or no front in common.
nlohmann::ordered_json comparison_json(std::span<const std::pair<ComparedRun, ComparedRun>> pairs);

/// The same for a terminal.
std::string comparison_table(const nlohmann::ordered_json& comparison);

} // namespace monet

// Arguments and results of `monet explore`, shared by its files.
#pragma once

#include "console.hpp"

#include "monet/explore/explore.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace monet::cli {

struct ExploreArguments {
  std::string space;
  StrategyOptions strategy; ///< seed, budget and name; jobs of this process
  std::string store;        ///< file; may be empty
  bool resume = false;
  int jobs = 0; ///< as specified; 0: all cores, or 1 per process of an MPI job
  std::string json;
  std::string folder; ///< for explore.json, report.html and the best designs; may be empty
  std::string csv;
  std::vector<std::uint64_t> designs; ///< designs with reports, in addition to the best
  std::vector<std::string> compare;   ///< two explore.json files or stores; else empty
  std::vector<std::string> of;        ///< runs of --compare; empty: runs in both files
};

/// Parts of an exploration that the caller in this process provides; each may be empty.
struct OwnParts {
  std::string strategy_name;
  /// Replaces the strategy that is named on the command line.
  std::function<std::unique_ptr<Strategy>(const Space&, DesignEvaluator&)> strategy;
  /// Called before a store is opened: adds the caller's metrics of designs and the caller's part
  /// of the space's identity.
  std::function<void(Space&)> adapt;
  std::function<std::unique_ptr<DesignEvaluator>(const Space&, std::unique_ptr<DesignEvaluator>)>
      evaluator;
};

/// Exploration that is complete or was interrupted.
struct Exploration {
  Space space;
  StrategyOptions strategy;
  std::string ended_early; ///< Strategy::ended_early()
  ExplorationResult result;
};

/// Checks ids of designs. Throws InputError if one is outside the space or violates a constraint.
void check_designs(const Space& space, const std::vector<DesignId>& asked);

/// Writes the requested results: JSON, the folder, and the table to standard output.
void write_exploration(const ExploreArguments& arguments, const Exploration& exploration,
                       Session& session);

/// Runs monet explore --compare A B; returns the exit code.
int compare_explorations(const ExploreArguments& arguments, Session& session);

} // namespace monet::cli

// monet explore: what its parts share.
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
  StrategyOptions strategy; ///< its seed, budget and name; jobs are those of this process
  std::string store;        ///< file; empty: none
  bool resume = false;
  int jobs = 0; ///< as given; 0: all cores, or 1 in each process of an MPI job
  std::string json;
  std::string folder; ///< for explore.json, report.html and the best designs; empty: none
  std::string csv;
  std::vector<std::uint64_t> designs; ///< reports in the folder besides those of the best
  std::vector<std::string> compare;   ///< two explore.json files or stores; empty: explore
  std::vector<std::string> of;        ///< of --compare: a run of each; empty: the same runs
};

/// Parts of an exploration that the caller in this process has written itself; each may be empty.
struct OwnParts {
  std::string strategy_name;
  /// In place of the strategy that is named on the command line.
  std::function<std::unique_ptr<Strategy>(const Space&, DesignEvaluator&)> strategy;
  /// Before a store is opened: what else designs come to, and what that is called in its identity.
  std::function<void(Space&)> adapt;
  std::function<std::unique_ptr<DesignEvaluator>(const Space&, std::unique_ptr<DesignEvaluator>)>
      evaluator;
};

/// An exploration that is done, or as far as it came.
struct Exploration {
  Space space;
  StrategyOptions strategy;
  std::string ended_early; ///< Strategy::ended_early()
  ExplorationResult result;
};

/// InputError where an id is beyond the space or a constraint excludes it.
void check_designs(const Space& space, const std::vector<DesignId>& asked);

/// Writes what was asked for: JSON, the folder, the table to standard output.
void write_exploration(const ExploreArguments& arguments, const Exploration& exploration,
                       Session& session);

/// monet explore --compare A B; returns the exit code.
int compare_explorations(const ExploreArguments& arguments, Session& session);

} // namespace monet::cli

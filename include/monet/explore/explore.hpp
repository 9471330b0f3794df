// Exploration of a space: a strategy's designs are evaluated on threads or processes.
// Example:
//   ExplorationResult explore_all(const Space& space, const StrategyOptions& options) {
//     const std::unique_ptr<DesignStore> store = memory_store();
//     const std::unique_ptr<DesignEvaluator> evaluator = make_evaluator(space, store.get());
//     const std::unique_ptr<Strategy> strategy = make_strategy(space, *evaluator, options);
//     const std::unique_ptr<DesignRunner> runner = thread_runner(*evaluator, options.jobs);
//     return explore(space, *strategy, *store, *runner, {});
//   }
#pragma once

#include "monet/explore/space.hpp"
#include "monet/explore/store.hpp"
#include "monet/explore/strategy.hpp"
#include "monet/optimise/search.hpp"

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <vector>

namespace monet {

/// Evaluator of batches of designs.
class DesignRunner {
public:
  virtual ~DesignRunner() = default;
  /// Evaluates designs until all are done or the control is interrupted; designs under way are
  /// finished first. Calls `done` with results as they arrive, in any order, from one thread at a
  /// time. With fronts it is a race: designs that the fronts dominate may be given up.
  virtual void run(std::span<const DesignId> ids, const SharedFronts& fronts,
                   const SearchControl& control,
                   const std::function<void(std::span<const DesignResult>)>& done) = 0;
  /// Number of designs evaluated at once.
  virtual std::size_t workers() const = 0;
};

/// Runner on threads of this process; 0 = all cores.
std::unique_ptr<DesignRunner> thread_runner(DesignEvaluator& evaluator, int jobs);

/// Results of an exploration.
struct ExplorationResult {
  std::vector<DesignResult> results; ///< sorted by id
  std::uint64_t evaluated_now = 0;   ///< number of results that were not in the store before
  std::uint64_t skipped_by_bound = 0;
  std::uint64_t excluded = 0;
  bool interrupted = false;
  double seconds = 0;
};

/// Runs the strategy to its end. Each batch is looked up in the store; missing designs are
/// evaluated and stored, and the strategy receives all results. Progress counts designs, out of the
/// budget or the space.
ExplorationResult explore(const Space& space, Strategy& strategy, DesignStore& store,
                          DesignRunner& runner, const SearchControl& control);

} // namespace monet

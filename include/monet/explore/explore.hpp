// A space's designs evaluated by a strategy on threads or processes, and what came of it.
#pragma once

#include "monet/explore/design.hpp"
#include "monet/explore/evaluator.hpp"
#include "monet/explore/store.hpp"
#include "monet/explore/strategy.hpp"
#include "monet/optimise/search.hpp"

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <vector>

namespace monet {

/// Evaluates batches of designs.
class DesignRunner {
public:
  virtual ~DesignRunner() = default;
  /// Calls `done` with results as they come, in any order, from one thread at a time; returns when
  /// all ids are evaluated or the control is interrupted (what is under way is finished first).
  /// A race where fronts are given: designs that they beat may be given up.
  virtual void run(std::span<const DesignId> ids, const SharedFronts& fronts,
                   const SearchControl& control,
                   const std::function<void(std::span<const DesignResult>)>& done) = 0;
  /// Designs under way at once.
  virtual std::size_t workers() const = 0;
};

/// On threads of this process; 0 = all cores.
std::unique_ptr<DesignRunner> thread_runner(DesignEvaluator& evaluator, int jobs);

struct ExplorationResult {
  std::vector<DesignResult> results; ///< in order of id
  std::uint64_t evaluated_now = 0;   ///< of them, those that were not in the store before
  std::uint64_t skipped_by_bound = 0;
  std::uint64_t excluded = 0;
  bool interrupted = false;
  double seconds = 0;
};

/// Runs the strategy to its end: each batch that it asks for is looked up in the store, what is
/// missing is evaluated and stored, and the strategy is told. Progress: designs done of the
/// budget or the space.
ExplorationResult explore(const Space& space, Strategy& strategy, DesignStore& store,
                          DesignRunner& runner, const SearchControl& control);

} // namespace monet

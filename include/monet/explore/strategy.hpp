// Exploration strategies: the selection and order of the designs of a space that are evaluated.
// Example:
//   std::vector<DesignId> first_batch(const Space& space, DesignEvaluator& evaluator) {
//     StrategyOptions options;
//     options.budget = 100;
//     return make_strategy(space, evaluator, options)->ask();
//   }
#pragma once

#include "monet/explore/space.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace monet {

/// Designs of a space from a strategy's point of view: mixed-radix numbers, the first parameter
/// most significant. Constraints exclude some of them.
struct DesignSet {
  std::vector<std::uint32_t> values; ///< number of values per parameter, at least 1
  /// Whether constraints exclude a design; may be empty if there are no constraints. Called from
  /// several threads.
  std::function<bool(DesignId)> excludes;
  std::vector<FrontRequest> fronts;

  /// Number of designs, including excluded ones. Throws InternalError beyond 64 bits.
  std::uint64_t size() const;
  bool keeps(DesignId id) const { return !excludes || !excludes(id); }
  std::vector<std::uint32_t> choices(DesignId id) const;
  DesignId id_of(const std::vector<std::uint32_t>& choices) const;
};

/// Design set of a space. Keeps a reference to the space.
DesignSet design_set(const Space& space);

/// Fronts of the results so far (src/explore/strategy/design_fronts.hpp).
class KnownFronts;
using SharedFronts = std::shared_ptr<const KnownFronts>;

/// Designs to be evaluated until the fronts dominate their bounds.
struct DesignRace {
  std::vector<DesignId> ids;
  SharedFronts fronts;
};

/// A strategy that requests batches of designs and receives the results of each batch before the
/// next. Its requests depend only on the space, its options and the results, never on time or
/// workers. An interrupted run can therefore be repeated from stored results.
class Strategy {
public:
  virtual ~Strategy() = default;
  /// Designs to evaluate next, each at most once per run, without excluded ones. An empty batch
  /// means the end, unless ended() returns false.
  virtual std::vector<DesignId> ask() = 0;
  /// Whether the strategy has ended, after an empty batch of ask(). False: it has done only a part
  /// of some long work, so that the caller can check for stops and run race() before the next
  /// ask().
  virtual bool ended() const { return true; }
  /// Designs to race before the next ask(), after an empty batch if the strategy has not ended.
  /// They become part of the result only if ask() requests them later.
  virtual DesignRace race() const { return {}; }
  /// Receives the results of a race, in the order of race(); given-up designs are among them.
  virtual void tell_race(std::span<const DesignResult> results) { static_cast<void>(results); }
  /// Receives the results of ask(), in its order.
  virtual void tell(std::span<const DesignResult> results) = 0;
  /// Number of designs excluded from every front by bounds, without evaluation.
  virtual std::uint64_t skipped_by_bound() const { return 0; }
  /// Number of designs that constraints exclude, among those that the strategy has met.
  virtual std::uint64_t excluded() const { return 0; }
  /// Reason why fewer designs were requested than the budget, after the end; empty otherwise.
  virtual std::string ended_early() const { return {}; }
};

/// Options of make_strategy().
struct StrategyOptions {
  std::string name = "exhaustive"; ///< see strategy_names()
  std::uint64_t budget = 0;        ///< maximum evaluations; 0: unlimited (not random, lhs)
  std::uint64_t seed = 1;
  int jobs = 1; ///< threads that compute bounds
};

/// Names of the strategies, each with a line for --help: exhaustive, random, lhs, climb, nsga2,
/// racing (or `halving`, its old name).
std::span<const std::pair<std::string_view, std::string_view>> strategy_names();

/// Creates a strategy by name. The caller checks the name with strategy_names(). Throws
/// InfeasibleError if the space is too large for the strategy without a budget.
std::unique_ptr<Strategy> make_strategy(const Space& space, DesignEvaluator& evaluator,
                                        const StrategyOptions& options);
/// Creates a strategy for a design set, without a space's files. Errors as above.
std::unique_ptr<Strategy> make_strategy(DesignSet designs, DesignEvaluator& evaluator,
                                        const StrategyOptions& options);

} // namespace monet

// Which designs of a space are evaluated, and in which order.
#pragma once

#include "monet/explore/design.hpp"
#include "monet/explore/evaluator.hpp"
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

/// The designs of a space as strategies see them: mixed-radix numbers, the first parameter most
/// significant; constraints exclude some.
struct DesignSet {
  std::vector<std::uint32_t> values; ///< per parameter, how many; at least 1 each
  /// Whether constraints exclude a design; may be empty: none are. Called from several threads.
  std::function<bool(DesignId)> excludes;
  std::vector<FrontRequest> fronts;

  /// Excluded designs included. InternalError beyond 64 bits.
  std::uint64_t size() const;
  bool keeps(DesignId id) const { return !excludes || !excludes(id); }
  std::vector<std::uint32_t> choices(DesignId id) const;
  DesignId id_of(const std::vector<std::uint32_t>& choices) const;
};

/// Keeps a reference to the space.
DesignSet design_set(const Space& space);

/// The fronts of the results so far (src/explore/strategy/design_fronts.hpp).
class KnownFronts;
using SharedFronts = std::shared_ptr<const KnownFronts>;

/// Designs to be evaluated as far as they are not beaten by the fronts.
struct DesignRace {
  std::vector<DesignId> ids;
  SharedFronts fronts;
};

/// A strategy asks for batches of designs and is told of each batch before the next. What it asks
/// for depends on the space, its options and what it was told, never on time or workers, so that a
/// run that was cut short can be repeated from stored results.
class Strategy {
public:
  virtual ~Strategy() = default;
  /// Designs to evaluate next, each at most once in a run; none: done, unless ended() says no.
  /// Constraints are kept.
  virtual std::vector<DesignId> ask() = 0;
  /// After ask() gave nothing: false where it has only done a part of work that takes long, so that
  /// whoever asks can look around, and run its race, before asking again.
  virtual bool ended() const { return true; }
  /// After ask() gave nothing and has not ended: designs to be raced before it is asked again. They
  /// are no part of the result unless they are asked for later.
  virtual DesignRace race() const { return {}; }
  /// What the racers came to, in that order; some are given up.
  virtual void tell_race(std::span<const DesignResult> results) { static_cast<void>(results); }
  /// Results of what was asked for, in that order.
  virtual void tell(std::span<const DesignResult> results) = 0;
  /// Designs so far that were shown to be on no front without evaluation.
  virtual std::uint64_t skipped_by_bound() const { return 0; }
  /// Designs of the space that constraints exclude, as far as the strategy met them.
  virtual std::uint64_t excluded() const { return 0; }
  /// Once ask() gave nothing: why fewer designs were asked for than the budget; empty otherwise.
  virtual std::string ended_early() const { return {}; }
};

struct StrategyOptions {
  std::string name = "exhaustive"; ///< see strategy_names()
  std::uint64_t budget = 0;        ///< most evaluations; 0: none (not for random and lhs)
  std::uint64_t seed = 1;
  int jobs = 1; ///< threads that compute bounds
};

/// Exhaustive, random, lhs, climb, nsga2, racing (or `halving`, its old name): with a line on each
/// for --help.
std::span<const std::pair<std::string_view, std::string_view>> strategy_names();

/// InputError-free: the names are checked by the caller through strategy_names(); InfeasibleError
/// when the space is too large for the strategy without a budget.
std::unique_ptr<Strategy> make_strategy(const Space& space, DesignEvaluator& evaluator,
                                        const StrategyOptions& options);
/// The same without a space's files.
std::unique_ptr<Strategy> make_strategy(DesignSet designs, DesignEvaluator& evaluator,
                                        const StrategyOptions& options);

} // namespace monet

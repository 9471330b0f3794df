// Common parts of all searches: limits, progress reports and certificates of results.
// Example:
//   std::atomic<bool> interrupted{false}; // set by a signal handler
//   SearchControl one_minute() {
//     SearchControl control;
//     control.stop = &interrupted;
//     control.deadline = std::chrono::steady_clock::now() + std::chrono::minutes(1);
//     return control;
//   }
#pragma once

#include "monet/base/stop.hpp"
#include "monet/model/model_step.hpp"
#include "monet/schedule/tile_costs.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <limits>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace monet {

/// Cache of schedule figures for one step with the same options on many chips. A schedule depends
/// on a core's inner memories only through the costs of tiles. Chips that differ in the sizes of
/// inner memories thus have the same tiles and, if their tile costs are equal, the same schedule.
/// The oldest entries are evicted. Thread-safe; results do not depend on the content of the cache.
class KnownSchedules {
public:
  /// Key of a schedule. Keys are equal only for steps with equal schedules, if `way`
  /// identifies the tiling method. `best` is the value at which scheduling ends early.
  static std::string key(const Chip& chip, const TileCosts& costs, std::string_view way,
                         std::optional<double> best);

  /// Outcome of a schedule.
  struct Outcome {
    std::optional<StepFigures> figures; ///< nullopt: scheduling ended early
  };
  /// Outcome for a key; nullopt if it is not in the cache.
  std::optional<Outcome> find(const std::string& key) const;
  /// Adds an outcome and evicts the oldest one if the cache is full.
  void add(std::string key, const Outcome& outcome);

private:
  /// Maximum number of entries, whose keys have about 10 KB each.
  static constexpr std::size_t kMax = 512;

  mutable std::mutex mutex_;
  std::unordered_map<std::string, Outcome> known_;
  std::deque<const std::string*> order_; ///< keys of known_, oldest first
};

/// Progress of a search. Values that are not known yet are NaN.
struct SearchProgress {
  std::string_view phase; ///< such as "allocation: generation" or "milp"
  std::int64_t done = 0;
  std::int64_t total = 0; ///< 0: not known
  /// Best value found so far.
  double best = std::numeric_limits<double>::quiet_NaN();
  /// Lower bound so far.
  double bound = std::numeric_limits<double>::quiet_NaN();
};

/// Limits of a search. The effort is in units of work, so that a seed yields the same result on any
/// machine. `deadline` and `stop` only interrupt the search, which then returns the best result so
/// far.
struct SearchControl {
  std::uint64_t seed = 1;
  int jobs = 1; ///< threads; the result is the same for any number
  /// Flag that interrupts the search once it is true. May be null.
  const std::atomic<bool>* stop = nullptr;
  /// Flag that also interrupts the initial plans of a search; set `stop` before it. May be null.
  const std::atomic<bool>* stop_at_once = nullptr;
  std::chrono::steady_clock::time_point deadline = std::chrono::steady_clock::time_point::max();
  /// Callback for progress reports; may be empty.
  std::function<void(const SearchProgress&)> progress;

  /// Whether `stop` or the deadline interrupts the search now.
  bool interrupted() const;
  /// Request for check_stop(), see StopScope.
  StopRequest stop_request() const { return {stop, deadline}; }
  /// Request for the first plan of a search, without which there is no result, and for its bound.
  /// It has a grace period, which starts now if the deadline has passed.
  StopRequest first_plan_request() const {
    return {stop, std::max(deadline, std::chrono::steady_clock::now()), kFirstPlanGrace};
  }
  /// Runs the body. Returns false if these limits interrupted it; rethrows Stopped for other
  /// reasons.
  template <class Body>
  bool finishes(Body&& body) const {
    try {
      std::forward<Body>(body)();
      return true;
    } catch (const Stopped&) {
      if (!interrupted())
        throw;
      return false;
    }
  }
  /// Makes the initial plans of a search, which only `stop_at_once` interrupts. In that case it
  /// warns that the result may be worse and throws Stopped.
  void begin(const std::function<void()>& make) const;
  /// Exception for a search that was interrupted without a result.
  Stopped stopped(const std::string& when) const;
  /// Seconds until the deadline, at least 0; infinite without one.
  double seconds_left() const;
  /// Copy whose deadline is after 1 / `parts` of the remaining time.
  SearchControl share(int parts) const;
  /// Reports progress to the callback, if there is one.
  void tell(const SearchProgress& state) const {
    if (progress)
      progress(state);
  }
};

/// Parts of a search in their order. Empty parts are skipped.
struct SearchParts {
  /// Evaluates the baseline, so that the answer is never worse. Ends only by `stop_at_once`.
  std::function<void()> start;
  std::function<void()> bound;   ///< computes the lower bound, with first_plan_request()
  std::function<void()> improve; ///< looks for better plans, with stop_request()
};
/// Runs the parts. Returns false if a limit ended the search; the best result so far remains.
bool run_search(const SearchParts& parts, const SearchControl& control);

/// The loop of a search. Until `is_done()` or a limit, `propose()` returns candidates, and
/// `judge(candidates)` evaluates them, keeps the best and reports progress. Candidates that are
/// empty end the loop: nothing is left to try.
template <class IsDone, class Propose, class Judge>
void run_batches(const SearchControl& control, IsDone is_done, Propose propose, Judge judge) {
  while (!is_done() && !control.interrupted()) {
    auto candidates = propose();
    if (candidates.empty())
      return;
    judge(candidates);
  }
}

/// Description of a search, the table at the top of its file.
struct SearchInfo {
  std::string_view name; ///< of its command: `monet optimise NAME`
  std::string_view decides;
  std::string_view options;    ///< type of its options
  std::string_view exact;      ///< where its answer is proven to be optimal
  std::string_view bound;      ///< the plans for which its bound holds
  std::string_view evaluation; ///< what it costs to judge one candidate
  std::string_view method;     ///< with its source
};
/// The searches of a step.
std::vector<SearchInfo> searches();

/// Quality of a result: its value and a lower bound on the minimised value.
struct Certificate {
  /// Value of the result.
  double best = std::numeric_limits<double>::infinity();
  /// Lower bound on the value of any result.
  double bound = -std::numeric_limits<double>::infinity();
  bool interrupted = false; ///< a limit interrupted the search or a part of it
  /// Value of the step without the search; NaN if the search has no baseline.
  double start = std::numeric_limits<double>::quiet_NaN();

  /// Whether the result is worse than the baseline.
  bool is_worse_than_start() const { return best > start; }
  /// Relative gap (best - bound) / bound; 0 if both are equal, infinite if one is unknown.
  double gap() const;
};

} // namespace monet

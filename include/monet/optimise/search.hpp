// Common parts of all searches: limits, progress reports and certificates of results.
#pragma once

#include "monet/base/stop.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <string_view>
#include <utility>

namespace monet {

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

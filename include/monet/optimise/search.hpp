// What every search shares: its limits, how it tells what it has found so far, and what it may
// claim about its answer.
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

/// How far a search has come. Numbers that are not known yet are NaN.
struct SearchProgress {
  std::string_view phase; ///< "allocation: generation", "milp"
  std::int64_t done = 0;
  std::int64_t total = 0; ///< 0 = not known
  double best = std::numeric_limits<double>::quiet_NaN();
  double bound = std::numeric_limits<double>::quiet_NaN();
};

/// Limits of a search. Its effort is set in units of work, so that the same seed gives the same
/// answer on any machine; `deadline` and `stop` only cut it short, with the best so far.
struct SearchControl {
  std::uint64_t seed = 1;
  int jobs = 1; ///< threads; results are the same for any number
  const std::atomic<bool>* stop = nullptr;
  /// Ends the plans that a search begins with, too; whoever sets it sets `stop` first. May be null.
  const std::atomic<bool>* stop_at_once = nullptr;
  std::chrono::steady_clock::time_point deadline = std::chrono::steady_clock::time_point::max();
  std::function<void(const SearchProgress&)> progress; ///< may be empty

  bool interrupted() const;
  /// For what check_stop() heeds, see StopScope. The first plan of a search, without which there is
  /// no answer, and its bound have some grace, from now on where the deadline is over.
  StopRequest stop_request() const { return {stop, deadline}; }
  StopRequest first_plan_request() const {
    return {stop, std::max(deadline, std::chrono::steady_clock::now()), kFirstPlanGrace};
  }
  /// Runs the body; false where it was these limits that ended it. What ends for another reason
  /// throws on.
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
  /// Makes the plans that a search begins with, which only `stop_at_once` ends: then with a warning
  /// that the answer may be worse, and Stopped.
  void begin(const std::function<void()>& make) const;
  /// What a search throws that was interrupted and has nothing to give.
  Stopped stopped(const std::string& when) const;
  /// Seconds until the deadline, at least 0; infinite without one.
  double seconds_left() const;
  /// The same for one of so many parts of the time that is left.
  SearchControl share(int parts) const;
  void tell(const SearchProgress& state) const {
    if (progress)
      progress(state);
  }
};

/// How good an answer is: no answer is below `bound` (of what is minimised).
struct Certificate {
  double best = std::numeric_limits<double>::infinity();
  double bound = -std::numeric_limits<double>::infinity();
  bool interrupted = false; ///< a limit ended the search, or a part of it
  /// What the step comes to without the search; not a number where it begins with nothing.
  double start = std::numeric_limits<double>::quiet_NaN();

  bool is_worse_than_start() const { return best > start; }
  /// (best - bound) / bound; 0 when both are equal, infinite where nothing is known.
  double gap() const;
};

} // namespace monet

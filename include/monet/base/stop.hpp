// Cooperative stops: long loops call check_stop(), which throws once the user or a time limit ends
// the work.
// Example:
//   template <class Work>
//   bool finishes_within(std::chrono::seconds limit, Work work) try {
//     const StopScope scope(StopRequest{nullptr, StopRequest::Clock::now() + limit});
//     work(); // its loops call check_stop()
//     return true;
//   } catch (const Stopped&) {
//     return false;
//   }
#pragma once

#include <atomic>
#include <chrono>
#include <optional>
#include <stdexcept>
#include <string>

namespace monet {

/// Thrown when the user asks to stop (Ctrl-C) or a time limit has passed. Work finished before
/// stays valid.
class Stopped : public std::runtime_error {
public:
  explicit Stopped(const std::string& what, bool by_clock = false)
      : std::runtime_error(what), by_clock_(by_clock) {}
  /// Whether a time limit, not the user, ended the work.
  bool by_clock() const { return by_clock_; }

private:
  bool by_clock_;
};

/// A request to stop: when `flag` is set or `deadline` has passed, whichever is first.
struct StopRequest {
  using Clock = std::chrono::steady_clock;

  const std::atomic<bool>* flag = nullptr; ///< null: no flag
  Clock::time_point deadline = Clock::time_point::max();
  /// Extra time after the flag or the deadline for work without which there is no result at all.
  Clock::duration grace{0};

  bool is_late(Clock::time_point now) const {
    return deadline != Clock::time_point::max() && now - grace >= deadline;
  }
};

/// Grace period for the first plan of a small step: long enough to find one, too short for a user
/// to notice.
inline constexpr std::chrono::milliseconds kFirstPlanGrace{250};

/// A scope in which check_stop() also checks a request: in the thread that created the scope and in
/// the threads that parallel_for() starts from it. Scopes nest; an inner scope does not cancel an
/// outer one.
class StopScope {
public:
  explicit StopScope(const StopRequest& request);
  /// Refers to a request that may change, but not during parallel loops. It must outlive the scope.
  explicit StopScope(const StopRequest* request);
  ~StopScope();
  StopScope(const StopScope&) = delete;
  StopScope& operator=(const StopScope&) = delete;

  /// Innermost scope of this thread, or null; passed to threads that continue its work.
  static const StopScope* current();
  /// Adopts, in a new thread, the scopes of the thread that started it.
  struct Adopt {
    explicit Adopt(const StopScope* of_starter);
    ~Adopt();
    Adopt(const Adopt&) = delete;
    Adopt& operator=(const Adopt&) = delete;

  private:
    const StopScope* before_;
  };

private:
  using Time = StopRequest::Clock::time_point;

  friend void check_stop();
  friend bool is_stop_flag_set();
  void check(std::optional<Time>& now) const;

  StopRequest own_;
  const StopRequest* request_;
  const StopScope* outer_;
  mutable std::atomic<Time::rep> seen_{0}; ///< when the flag was first seen; 0: not yet
};

/// Throws Stopped if any scope of this thread requests it. With a time limit it reads the clock,
/// about 30 ns, so a loop should take longer per iteration.
void check_stop();

/// Whether the flag of any scope of this thread is set. Ignores deadlines and grace periods.
bool is_stop_flag_set();

} // namespace monet

// How work under way is ended from outside: loops that may run long ask check_stop(), which throws
// once the user or a limit of time wants the end.
#pragma once

#include <atomic>
#include <chrono>
#include <optional>
#include <stdexcept>
#include <string>

namespace monet {

/// The user asked to stop (Ctrl-C), or a limit of time has passed. What was finished before stays
/// valid.
class Stopped : public std::runtime_error {
public:
  explicit Stopped(const std::string& what, bool by_clock = false)
      : std::runtime_error(what), by_clock_(by_clock) {}
  /// A limit of time ended it, nobody asked.
  bool by_clock() const { return by_clock_; }

private:
  bool by_clock_;
};

/// What ends work: a flag that somebody sets, a time, whatever is first.
struct StopRequest {
  using Clock = std::chrono::steady_clock;

  const std::atomic<bool>* flag = nullptr; ///< null: nobody sets one
  Clock::time_point deadline = Clock::time_point::max();
  /// Work that there is no answer without may go on for so long after the flag is seen, or the
  /// deadline.
  Clock::duration grace{0};

  bool is_late(Clock::time_point now) const {
    return deadline != Clock::time_point::max() && now - grace >= deadline;
  }
};

/// Long enough for the first plan of a small step, and too short to be noticed.
inline constexpr std::chrono::milliseconds kFirstPlanGrace{250};

/// While it lives, check_stop() heeds the request too: in the thread that made it, and in those
/// that parallel_for() starts from there. Scopes are nested; an inner one lifts no outer one.
class StopScope {
public:
  explicit StopScope(const StopRequest& request);
  /// Of a request that may change, outside of parallel loops; it outlives the scope.
  explicit StopScope(const StopRequest* request);
  ~StopScope();
  StopScope(const StopScope&) = delete;
  StopScope& operator=(const StopScope&) = delete;

  /// The innermost of this thread, or null; for threads that go on with its work.
  static const StopScope* current();
  /// Takes over the scopes of the thread that started this one.
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
  mutable std::atomic<Time::rep> seen_{0}; ///< when the flag was; 0: it was not
};

/// Throws Stopped if any scope of this thread asks for it. Costs a read of the clock, some 30 ns,
/// where there is a limit of time: for loops whose rounds take longer.
void check_stop();

/// Whether the flag of any scope of this thread is set, whatever its grace; deadlines do not count.
bool is_stop_flag_set();

} // namespace monet

#include "pipeline/stopping.hpp"

#include <chrono>
#include <limits>
#include <thread>

namespace monet::fuzz {

namespace {

using Clock = std::chrono::steady_clock;

constexpr Clock::rep kNever = std::numeric_limits<Clock::rep>::max();
std::atomic<Clock::rep> deadline{kNever};
std::atomic<bool> stopped{false};

/// One thread for all inputs, which are many.
void watch() {
  for (;;) {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    if (Clock::now().time_since_epoch().count() > deadline.load())
      stopped.store(true);
  }
}

} // namespace

StopAfter::StopAfter(double seconds) {
  static const bool watching = [] {
    std::thread(watch).detach();
    return true;
  }();
  static_cast<void>(watching);
  stopped.store(false);
  const auto left =
      std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
  deadline.store((Clock::now() + left).time_since_epoch().count());
}

StopAfter::~StopAfter() {
  deadline.store(kNever);
}

const std::atomic<bool>* StopAfter::flag() const {
  return &stopped;
}

} // namespace monet::fuzz

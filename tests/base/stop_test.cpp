#include "base/shared/parallel.hpp"

#include "monet/base/stop.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>

namespace monet {
namespace {

using Clock = StopRequest::Clock;

TEST(Stop, NobodyAsksWithoutAScope) {
  EXPECT_NO_THROW(check_stop());
}

TEST(Stop, AFlagEndsWhatIsInItsScope) {
  std::atomic<bool> flag{false};
  {
    const StopScope scope({&flag});
    EXPECT_NO_THROW(check_stop());
    flag = true;
    EXPECT_THROW(check_stop(), Stopped);
  }
  EXPECT_NO_THROW(check_stop());
}

TEST(Stop, ADeadlineSaysThatNobodyAsked) {
  const StopScope scope({nullptr, Clock::now()});
  try {
    check_stop();
    FAIL() << "the deadline is over";
  } catch (const Stopped& stopped) {
    EXPECT_TRUE(stopped.by_clock());
  }
}

TEST(Stop, AnInnerScopeLiftsNoOuterOne) {
  std::atomic<bool> outer{true};
  const StopScope around({&outer});
  const StopScope inside(StopRequest{});
  try {
    check_stop();
    FAIL() << "the outer scope asks";
  } catch (const Stopped& stopped) {
    EXPECT_FALSE(stopped.by_clock());
  }
}

TEST(Stop, ThreadsOfALoopHeedTheScopesOfTheirCaller) {
  std::atomic<bool> flag{false};
  const StopScope scope({&flag});
  std::atomic<int> stopped{0};
  flag = true;
  parallel_for(64, 4, [&](std::size_t) {
    try {
      check_stop();
    } catch (const Stopped&) {
      ++stopped;
    }
  });
  EXPECT_EQ(stopped, 64);
  std::thread alone([] { EXPECT_NO_THROW(check_stop()); });
  alone.join();
}

TEST(Stop, GraceBeginsWhenTheFlagIsSeen) {
  std::atomic<bool> flag{true};
  const StopScope scope({&flag, Clock::time_point::max(), std::chrono::hours(1)});
  EXPECT_NO_THROW(check_stop());
  EXPECT_NO_THROW(check_stop());
  const StopScope without({&flag, Clock::time_point::max(), Clock::duration(0)});
  EXPECT_THROW(check_stop(), Stopped);
}

TEST(Stop, GraceFollowsTheDeadline) {
  const Clock::time_point now = Clock::now();
  const StopScope scope({nullptr, now, std::chrono::hours(1)});
  EXPECT_NO_THROW(check_stop());
  EXPECT_TRUE((StopRequest{nullptr, now, {}}.is_late(now)));
  EXPECT_FALSE((StopRequest{nullptr, now, std::chrono::seconds(1)}.is_late(now)));
}

TEST(Stop, AWatchedRequestMayBeLifted) {
  std::atomic<bool> flag{true};
  StopRequest request{&flag};
  const StopScope scope(&request);
  EXPECT_THROW(check_stop(), Stopped);
  request = {};
  EXPECT_NO_THROW(check_stop());
}

} // namespace
} // namespace monet

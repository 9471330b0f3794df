#include "base/shared/rng.hpp"
#include "schedule/placement/memory_profile.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace monet {
namespace {

TEST(MemoryProfile, has_room_after_the_last_time_that_it_had_too_little) {
  MemoryProfile memory;
  memory.hold(10, 30);
  memory.hold(20, 50);
  memory.release(40, 50); // 30 during [10, 20), 80 until 40, then 30 again
  EXPECT_EQ(memory.held(), 30);
  EXPECT_EQ(memory.below_from(80), 0);
  EXPECT_EQ(memory.below_from(79), 40);
  EXPECT_EQ(memory.below_from(30), 40); // 30 themselves are no hindrance
  memory.release(60, 30);
  EXPECT_EQ(memory.below_from(79), 40);
  EXPECT_EQ(memory.below_from(29), 60); // and the time before 10 does not count
  memory.hold(45, 50);                  // later in the order, earlier in time
  memory.release(50, 50);
  EXPECT_EQ(memory.below_from(79), 50);
}

/// What is taken, hold by hold.
struct Holds {
  struct Hold {
    std::int64_t start, end, bits;
  };
  std::vector<Hold> holds;

  std::int64_t taken(std::int64_t time) const {
    std::int64_t sum = 0;
    for (const Hold& hold : holds)
      sum += hold.start <= time && time < hold.end ? hold.bits : 0;
    return sum;
  }
  std::int64_t below_from(std::int64_t limit) const {
    std::int64_t last = 0;
    for (const Hold& hold : holds) {
      for (const std::int64_t end : {hold.start, hold.end}) {
        if (end > 0 && taken(end - 1) > limit)
          last = std::max(last, end);
      }
    }
    return last;
  }
};

// Few enough holds that nothing is forgotten: the answers are those of the sums.
TEST(MemoryProfile, agrees_with_sums_over_all_holds) {
  constexpr std::int64_t kEver = 1'000'000;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    RandomStream rng(seed);
    MemoryProfile memory;
    Holds all;
    for (int step = 0; step < 400; ++step) {
      const auto start = static_cast<std::int64_t>(rng.below(1000));
      const auto bits = static_cast<std::int64_t>(1 + rng.below(50));
      memory.hold(start, bits);
      all.holds.push_back({start, kEver, bits});
      if (rng.below(4) > 0) {
        Holds::Hold& hold = all.holds[rng.below(all.holds.size())];
        if (hold.end == kEver) {
          hold.end = hold.start + 1 + static_cast<std::int64_t>(rng.below(300));
          memory.release(hold.end, hold.bits);
        }
      }
      ASSERT_EQ(memory.held(), all.taken(kEver - 1));
      const std::int64_t limit = memory.held() + static_cast<std::int64_t>(rng.below(400));
      ASSERT_EQ(memory.below_from(limit), all.below_from(limit)) << "seed " << seed;
    }
  }
}

// Of many steps the oldest are simplified: room may then come later, never sooner; and it comes at
// the right time where the latest steps decide.
TEST(MemoryProfile, stays_on_the_safe_side_of_what_it_forgets) {
  RandomStream rng(7);
  MemoryProfile memory;
  Holds all;
  int exact = 0, asked = 0;
  for (int step = 0; step < 6000; ++step) {
    const std::int64_t start = step * 10 + static_cast<std::int64_t>(rng.below(40));
    const std::int64_t end = start + 1 + static_cast<std::int64_t>(rng.below(400));
    const auto bits = static_cast<std::int64_t>(1 + rng.below(50));
    memory.hold(start, bits);
    memory.release(end, bits);
    all.holds.push_back({start, end, bits});
    if (step % 50 != 49)
      continue;
    const auto limit = static_cast<std::int64_t>(rng.below(1500));
    const std::int64_t truth = all.below_from(limit);
    ++asked;
    exact += memory.below_from(limit) == truth;
    ASSERT_GE(memory.below_from(limit), truth);
  }
  EXPECT_EQ(memory.held(), 0);
  EXPECT_GT(exact, asked * 9 / 10);
}

} // namespace
} // namespace monet

#include "base/shared/rng.hpp"
#include "schedule/placement/link_timeline.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

namespace monet {
namespace {

TEST(LinkTimeline, finds_the_first_gap_that_is_long_enough) {
  LinkTimeline link;
  link.book(10, 20, 1);
  link.book(25, 30, 1);
  EXPECT_EQ(link.first_fit(0, 10, 1), 0); // ends as the next begins
  EXPECT_EQ(link.first_fit(0, 11, 1), 30);
  EXPECT_EQ(link.first_fit(12, 5, 1), 20);
  EXPECT_EQ(link.first_fit(12, 6, 1), 30);
  EXPECT_EQ(link.first_fit(21, 4, 1), 21);
  link.book(20, 25, 1); // closes the gap
  EXPECT_EQ(link.first_fit(0, 11, 1), 30);
  EXPECT_EQ(link.first_fit(15, 1, 1), 30);
}

TEST(LinkTimeline, says_how_long_it_stays_free) {
  LinkTimeline link(64);
  link.book(10, 20, 48);
  link.book(30, 40, 64);
  EXPECT_EQ(link.free_until(0, 64), 10);
  EXPECT_EQ(link.free_until(0, 16), 30);
  EXPECT_EQ(link.free_until(15, 17), 15);
  EXPECT_EQ(link.free_until(40, 64), std::numeric_limits<std::int64_t>::max());
}

TEST(LinkTimeline, shares_its_bandwidth) {
  LinkTimeline link(64);
  link.book(10, 20, 48);
  EXPECT_EQ(link.free_at(9), 64);
  EXPECT_EQ(link.free_at(10), 16);
  EXPECT_EQ(link.first_fit(0, 30, 16), 0); // beside it
  EXPECT_EQ(link.first_fit(0, 30, 17), 20);
  link.book(0, 30, 16);
  EXPECT_EQ(link.free_at(15), 0);
  EXPECT_EQ(link.first_fit(0, 10, 48), 0); // ends as the link fills up
  EXPECT_EQ(link.first_fit(0, 11, 48), 20);
  EXPECT_EQ(link.first_fit(0, 11, 49), 30);
}

TEST(LinkTimeline, common_fit_of_two) {
  std::vector<LinkTimeline> links(2);
  links[0].book(0, 10, 1);
  links[1].book(12, 20, 1);
  const std::vector<std::uint32_t> both{0, 1};
  EXPECT_EQ(first_common_fit(links, both, 0, 2, 1), 10);
  EXPECT_EQ(first_common_fit(links, both, 0, 3, 1), 20);
  EXPECT_EQ(first_common_fit(links, {}, 7, 3, 1), 7);
}

/// The same by looking at every cycle.
class Cycles64 {
public:
  explicit Cycles64(std::int64_t bandwidth) : bandwidth_(bandwidth), used_(60000, 0) {}
  std::int64_t first_fit(std::int64_t from, std::int64_t length, std::int64_t share) const {
    for (std::int64_t run = 0, at = from;; ++at) {
      run = at < static_cast<std::int64_t>(used_.size()) &&
                    used_[static_cast<std::size_t>(at)] + share > bandwidth_
                ? 0
                : run + 1;
      if (run == length)
        return at - length + 1;
    }
  }
  void book(std::int64_t start, std::int64_t end, std::int64_t share) {
    for (std::int64_t at = start; at < end; ++at)
      used_[static_cast<std::size_t>(at)] += share;
  }
  std::int64_t free_at(std::int64_t at) const {
    return bandwidth_ - used_[static_cast<std::size_t>(at)];
  }

private:
  std::int64_t bandwidth_;
  std::vector<std::int64_t> used_;
};

/// Random bookings: `reach` of times asked for, `longest` transfer; gaps at the end of each when
/// `holes`, so that blocks and groups of steps come about.
void compare(std::uint64_t seed, std::int64_t bandwidth, int bookings, std::int64_t reach,
             std::int64_t longest, bool holes) {
  LinkTimeline link(bandwidth);
  Cycles64 cycles(bandwidth);
  std::uint64_t draw = 0;
  const auto below = [&](std::int64_t n) {
    return static_cast<std::int64_t>(random_bits(seed, draw++) % static_cast<std::uint64_t>(n));
  };
  for (int i = 0; i < bookings; ++i) {
    const std::int64_t from = below(reach);
    const std::int64_t length = 1 + below(longest);
    const std::int64_t share = below(2) == 0 ? bandwidth : 1 + below(bandwidth);
    const std::int64_t at = link.first_fit(from, length, share);
    ASSERT_EQ(at, cycles.first_fit(from, length, share)) << "seed " << seed << ", booking " << i;
    ASSERT_EQ(link.free_at(from), cycles.free_at(from));
    if (holes && below(4) == 0)
      continue;
    const std::int64_t end = holes ? at + std::max<std::int64_t>(1, length - 1) : at + length;
    link.book(at, end, share);
    cycles.book(at, end, share);
  }
}

TEST(LinkTimeline, agrees_with_an_array_of_cycles) {
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    compare(seed, 1, 200, 500, 20, false);
    compare(seed, 8, 200, 500, 20, true);
    compare(seed, 64, 200, 100, 9, true);
  }
}

TEST(LinkTimeline, agrees_with_an_array_of_cycles_over_many_steps) {
  for (std::uint64_t seed = 0; seed < 3; ++seed) {
    compare(seed, 1, 6000, 40000, 6, true);
    compare(seed, 16, 6000, 20000, 6, true);
    compare(seed, 16, 6000, 40, 4, true); // everybody asks from the beginning on
  }
}

TEST(LinkTimeline, forgets_no_gap) {
  LinkTimeline link;
  for (std::int64_t i = 0; i < 20000; ++i)
    link.book(10 * i, 10 * i + 5, 1);
  EXPECT_EQ(link.first_fit(0, 5, 1), 5);
  link.book(5, 10, 1);
  EXPECT_EQ(link.first_fit(0, 5, 1), 15);
  EXPECT_EQ(link.first_fit(0, 6, 1), 199995);
}

TEST(LinkTimeline, takes_little_time_over_many_gaps_that_are_too_short) {
  // 200,000 gaps, and as many searches from the beginning: by looking at each gap 4e10 steps.
  LinkTimeline link;
  const std::int64_t count = 200000;
  for (std::int64_t i = 0; i < count; ++i)
    link.book(10 * i, 10 * i + 5, 1);
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t at = link.first_fit(0, 7, 1);
    ASSERT_EQ(at, 10 * count - 5 + 10 * i);
    link.book(at, at + 7, 1);
    link.book(at + 7, at + 10, 1);
  }
}

} // namespace
} // namespace monet

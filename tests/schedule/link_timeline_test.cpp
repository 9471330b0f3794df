#include "schedule/link_timeline.hpp"

#include "monet/base/rng.hpp"

#include <gtest/gtest.h>

namespace monet {
namespace {

TEST(LinkTimeline, finds_the_first_gap_that_is_long_enough) {
  LinkTimeline link;
  link.occupy(10, 20);
  link.occupy(25, 30);
  EXPECT_EQ(link.first_gap(0, 10), 0); // ends as the next begins
  EXPECT_EQ(link.first_gap(0, 11), 30);
  EXPECT_EQ(link.first_gap(12, 5), 20);
  EXPECT_EQ(link.first_gap(12, 6), 30);
  EXPECT_EQ(link.first_gap(21, 4), 21);
  link.occupy(20, 25); // closes the gap
  EXPECT_EQ(link.first_gap(0, 11), 30);
  EXPECT_EQ(link.first_gap(15, 1), 30);
}

TEST(LinkTimeline, common_gap_of_two) {
  std::vector<LinkTimeline> links(2);
  links[0].occupy(0, 10);
  links[1].occupy(12, 20);
  const std::vector<std::size_t> both{0, 1};
  EXPECT_EQ(first_common_gap(links, both, 0, 2), 10);
  EXPECT_EQ(first_common_gap(links, both, 0, 3), 20);
}

TEST(LinkTimeline, agrees_with_an_array_of_cycles) {
  // Few enough bookings that no gap is forgotten.
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    LinkTimeline link;
    std::vector<bool> busy(4000, false);
    for (std::uint64_t i = 0; i < 100; ++i) {
      const auto from = static_cast<std::int64_t>(random_bits(seed, 2 * i) % 500);
      const auto length = static_cast<std::int64_t>(1 + random_bits(seed, 2 * i + 1) % 20);
      std::int64_t expected = from;
      for (std::int64_t run = 0, at = from; run < length; ++at) {
        run = busy[static_cast<std::size_t>(at)] ? 0 : run + 1;
        if (run == length)
          expected = at - length + 1;
      }
      ASSERT_EQ(link.first_gap(from, length), expected);
      link.occupy(expected, expected + length);
      for (std::int64_t at = expected; at < expected + length; ++at) {
        busy[static_cast<std::size_t>(at)] = true;
      }
    }
  }
}

TEST(LinkTimeline, forgets_old_gaps_but_never_books_twice) {
  LinkTimeline link;
  for (std::int64_t i = 0; i < 1000; ++i) {
    const std::int64_t start = link.first_gap(10 * i, 5);
    EXPECT_EQ(start, 10 * i);
    link.occupy(start, start + 5);
  }
  EXPECT_EQ(link.first_gap(9990, 5), 9995);
  EXPECT_EQ(link.first_gap(9980, 5), 9985); // recent gaps are remembered
  EXPECT_GT(link.first_gap(0, 5), 8000);    // old ones are not
}

} // namespace
} // namespace monet

#include "base/shared/rng.hpp"
#include "reference/stream/schedule/link_activity.hpp"

#include <gtest/gtest.h>

#include <array>

namespace monet::stream {
namespace {

TEST(StreamLinks, transfers_share_the_bandwidth) {
  LinkActivity link(64);
  link.book(0, 100, 48);
  EXPECT_EQ(link.first_window(0, 10, 16), 0);
  EXPECT_EQ(link.first_window(0, 10, 17), 100);
  link.book(20, 60, 16);
  EXPECT_EQ(link.first_window(0, 20, 16), 0); // ends as the next begins
  EXPECT_EQ(link.first_window(0, 21, 16), 60);
  EXPECT_EQ(link.first_window(30, 5, 1), 60);
  EXPECT_EQ(link.first_window(30, 0, 64), 30); // no time, no bandwidth
}

TEST(StreamLinks, more_than_the_link_has_may_be_booked) {
  LinkActivity link(64);
  link.book(10, 20, 80);
  EXPECT_EQ(link.first_window(0, 10, 0), 0);
  EXPECT_EQ(link.first_window(0, 11, 0), 20); // not even for nothing
}

TEST(StreamLinks, fractional_times_are_kept) {
  LinkActivity link(1);
  link.book(0, 2561.75, 1);
  EXPECT_EQ(link.first_window(2561.5, 1, 1), 2561.75);
}

TEST(StreamLinks, all_links_of_a_path_at_the_same_time) {
  std::vector<LinkActivity> links(2, LinkActivity(32));
  links[0].book(0, 10, 32);
  links[1].book(12, 20, 20);
  const std::array<LinkRequest, 2> both{{{0, 16}, {1, 16}}};
  EXPECT_EQ(first_common_window(links, both, 0, 2), 10);
  EXPECT_EQ(first_common_window(links, both, 0, 3), 20);
}

TEST(StreamLinks, agrees_with_an_array_of_cycles) {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    LinkActivity link(100);
    std::vector<std::int64_t> used(6000, 0);
    for (std::uint64_t i = 0; i < 100; ++i) {
      const auto from = static_cast<std::int64_t>(random_bits(seed, 3 * i) % 500);
      const auto length = static_cast<std::int64_t>(1 + random_bits(seed, 3 * i + 1) % 20);
      const auto wanted = static_cast<std::int64_t>(1 + random_bits(seed, 3 * i + 2) % 100);
      std::int64_t start = from;
      for (std::int64_t at = from; at < start + length; ++at) {
        if (used[static_cast<std::size_t>(at)] + wanted > 100)
          start = at + 1;
      }
      ASSERT_EQ(link.first_window(static_cast<double>(from), static_cast<double>(length), wanted),
                static_cast<double>(start));
      link.book(static_cast<double>(start), static_cast<double>(start + length), wanted);
      for (std::int64_t at = start; at < start + length; ++at)
        used[static_cast<std::size_t>(at)] += wanted;
    }
  }
}

} // namespace
} // namespace monet::stream

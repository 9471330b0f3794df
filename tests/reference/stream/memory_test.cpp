#include "reference/stream/schedule/memory.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace monet::stream {
namespace {

TEST(StreamUsage, room_is_sought_for_good) {
  Usage usage;
  usage.add(10, 60);
  usage.add(20, -60);
  usage.add(30, 80);
  usage.add(40, -80);
  EXPECT_EQ(usage.room_from(0, 20, 100), 0);
  EXPECT_EQ(usage.room_from(0, 40, 100), 40); // 80 are taken from 30 to 40
  EXPECT_EQ(usage.room_from(25, 40, 100), 40);
  EXPECT_EQ(usage.room_from(50, 400, 100), 50); // behind all times nothing is checked
  EXPECT_EQ(usage.peak(), 80);
}

TEST(StreamUsage, room_that_never_comes) {
  Usage usage;
  usage.add(10, 60);
  usage.add(20, 30);
  EXPECT_EQ(usage.room_from(5, 20, 100), 20); // the last time of greatest use
}

TEST(StreamUsage, new_times_are_truncated_where_they_belong) {
  Usage usage;
  usage.add(10, 1);
  usage.add(10.5, 2); // a second entry for 10, behind the first
  EXPECT_EQ(usage.at(10), 3);
  EXPECT_EQ(usage.at(9.9), 0);
  usage.add(10, -1); // the first entry, and all behind it
  EXPECT_EQ(usage.at(10), 2);
  EXPECT_EQ(usage.peak(), 2);
}

TEST(StreamUsage, max_from_a_time_on) {
  Usage usage;
  EXPECT_EQ(usage.max_from(1), std::nullopt);
  usage.add(10, 7);
  usage.add(20, -3);
  EXPECT_EQ(usage.max_from(0.5), 7);
  EXPECT_EQ(usage.max_from(11), 4);
  EXPECT_EQ(usage.max_from(21), std::nullopt);
}

Storage::MemoryContent holding(std::uint32_t content, std::uint32_t memory, double available) {
  Storage::MemoryContent made;
  made.object = content + 100;
  made.content = content;
  made.memory = memory;
  made.available = available;
  return made;
}

std::vector<std::uint32_t> contents(const Storage& storage, std::uint32_t memory) {
  std::vector<std::uint32_t> found;
  storage.for_each_in(memory, [&](const Storage::MemoryContent& h) { found.push_back(h.content); });
  return found;
}

TEST(StreamStorage, keeps_the_order_of_insertion) {
  Storage storage(2);
  storage.grow(4);
  for (std::uint32_t content = 0; content < 4; ++content)
    storage.insert(holding(content, 1, 0));
  storage.erase(1, 1);
  storage.erase(3, 1);
  storage.erase(3, 1); // absent: nothing
  storage.insert(holding(1, 1, 0));
  EXPECT_EQ(contents(storage, 1), (std::vector<std::uint32_t>{0, 2, 1}));
  EXPECT_TRUE(contents(storage, 0).empty());
  EXPECT_FALSE(storage.contains(3, 1));
}

TEST(StreamStorage, oldest_copy_then_first_memory) {
  Storage storage(3);
  storage.grow(1);
  EXPECT_EQ(storage.oldest(0), nullptr);
  storage.insert(holding(0, 0, 9));
  storage.insert(holding(0, 2, 5));
  storage.insert(holding(0, 1, 5));
  EXPECT_EQ(storage.oldest(0)->memory, 1U);
  storage.erase(0, 1);
  EXPECT_EQ(storage.oldest(0)->memory, 2U);
}

} // namespace
} // namespace monet::stream

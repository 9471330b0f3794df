#include "schedule/small_steps.hpp"
#include "reference/stream/schedule/fabric.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace monet::stream {
namespace {

using ::testing::ElementsAre;

CoreId core(std::size_t id) {
  return CoreId(id);
}

std::vector<std::string> names(const Chip& chip, std::span<const LinkId> path) {
  std::vector<std::string> found;
  for (const LinkId link : path)
    found.push_back(chip.links[link.index()].name);
  return found;
}

/// Cores without links but those of `pairs`, and an off-chip memory.
Chip chain(int cores, const std::vector<std::pair<std::size_t, std::size_t>>& pairs) {
  monet::testing::ChipShape shape;
  shape.cores = cores;
  Chip chip = monet::testing::make_chip(shape);
  std::vector<Link> links;
  for (const auto& [a, b] : pairs) {
    for (const auto& [from, to] : {std::pair{a, b}, std::pair{b, a}}) {
      Link link;
      link.name = fmt::format("{}>{}", from, to);
      link.cores = {CoreId(from), CoreId(to)};
      link.reach = LinkReach::forward;
      link.bandwidth_bits_per_cycle = 32;
      links.push_back(link);
    }
  }
  for (Link& link : chip.links) {
    if (link.reach == LinkReach::offchip_both) {
      link.name = "dram";
      links.push_back(link);
    }
  }
  chip.links = links;
  return chip;
}

// The off-chip memory is a core like any other for the reference: three hops lose to two of which
// both are the same link.
TEST(StreamFabric, far_cores_talk_through_the_offchip_memory) {
  const Chip chip = chain(4, {{0, 1}, {1, 2}, {2, 3}});
  Fabric fabric(chip);
  EXPECT_THAT(names(chip, fabric.path(core(0), core(3))), ElementsAre("dram", "dram"));
  EXPECT_THAT(names(chip, fabric.path(core(0), core(2))), ElementsAre("0>1", "1>2"));
  EXPECT_THAT(names(chip, fabric.path(core(3), core(4))), ElementsAre("dram"));
  EXPECT_TRUE(fabric.path(core(1), core(1)).empty());
}

// Of the ways 0-1-2, 0-3-2 and 0-dram-2 the one is found whose edge into 2 was named first: the
// second level is searched from the receiver. As networkx 3.
TEST(StreamFabric, ties_go_by_the_order_of_edges) {
  const Chip square = chain(4, {{0, 1}, {1, 2}, {2, 3}, {3, 0}});
  Fabric first(square);
  EXPECT_THAT(names(square, first.path(core(0), core(2))), ElementsAre("0>1", "1>2"));
  const Chip other = chain(4, {{2, 3}, {3, 0}, {0, 1}, {1, 2}});
  Fabric second(other);
  EXPECT_THAT(names(other, second.path(core(0), core(2))), ElementsAre("0>3", "3>2"));
}

TEST(StreamFabric, memories_come_in_the_order_in_which_edges_name_their_cores) {
  const Chip chip = chain(3, {{2, 0}});
  const Fabric fabric(chip);
  ASSERT_EQ(fabric.memories().size(), 4U);
  EXPECT_EQ(fabric.memories()[0].cores.front(), core(2));
  EXPECT_EQ(fabric.memories()[1].cores.front(), core(0));
  EXPECT_EQ(fabric.memories()[2].name, "dram"); // named by the edges of core 0
  EXPECT_EQ(fabric.memories()[3].cores.front(), core(1));
  EXPECT_EQ(fabric.top(core(0), MemoryOperand::I1), 1U);
}

TEST(StreamFabric, shared_memories_are_one) {
  Chip chip = chain(3, {{0, 2}, {1, 2}});
  chip.shared_memory = {{core(0), core(1)}};
  const Fabric fabric(chip);
  ASSERT_EQ(fabric.memories().size(), 3U);
  EXPECT_EQ(fabric.top(core(0), MemoryOperand::O), fabric.top(core(1), MemoryOperand::O));
  EXPECT_THAT(fabric.memories()[0].cores, ElementsAre(core(0), core(1)));
}

} // namespace
} // namespace monet::stream

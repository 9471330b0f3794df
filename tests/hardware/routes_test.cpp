#include "monet/hardware/chip.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cstdint>
#include <vector>

namespace monet {
namespace {

constexpr int kFar = 1000;

/// A random chip of up to 6 cores with the off-chip memory last.
Chip random_chip() {
  Chip chip;
  const auto count = *rc::gen::inRange<std::size_t>(2, 7);
  chip.cores.resize(count);
  chip.offchip = CoreId(count - 1);
  const auto links = *rc::gen::inRange<std::size_t>(0, 8);
  for (std::size_t l = 0; l < links; ++l) {
    Link link;
    link.bandwidth_bits_per_cycle = 1;
    for (std::size_t i = 0; i < count; ++i) {
      if (*rc::gen::arbitrary<bool>())
        link.cores.emplace_back(i);
    }
    if (link.cores.size() < 2)
      continue;
    if (link.cores.size() == 2) {
      link.reach = LinkReach::forward;
      if (*rc::gen::arbitrary<bool>())
        std::swap(link.cores[0], link.cores[1]);
    }
    chip.links.push_back(link);
  }
  return chip;
}

bool joins(const Link& link, CoreId from, CoreId to) {
  const auto has = [&](CoreId core) {
    return std::find(link.cores.begin(), link.cores.end(), core) != link.cores.end();
  };
  return has(from) && has(to) && (link.reach == LinkReach::any_pair || link.cores[0] == from);
}

/// Fewest hops between all pairs by Floyd and Warshall, never through the off-chip memory.
std::vector<std::vector<int>> hops_of(const Chip& chip) {
  const std::size_t n = chip.cores.size();
  std::vector<std::vector<int>> hops(n, std::vector<int>(n, kFar));
  for (std::size_t a = 0; a < n; ++a) {
    hops[a][a] = 0;
    for (std::size_t b = 0; b < n; ++b) {
      for (const Link& link : chip.links) {
        if (a != b && joins(link, CoreId(a), CoreId(b)))
          hops[a][b] = 1;
      }
    }
  }
  for (std::size_t k = 0; k + 1 < n; ++k) { // the last core is the off-chip memory
    for (std::size_t a = 0; a < n; ++a) {
      for (std::size_t b = 0; b < n; ++b) {
        hops[a][b] = std::min(hops[a][b], hops[a][k] + hops[k][b]);
      }
    }
  }
  return hops;
}

RC_GTEST_PROP(Routes, HaveTheFewestHops, ()) {
  Chip chip = random_chip();
  make_routes(chip);
  const auto hops = hops_of(chip);
  for (std::size_t a = 0; a < chip.cores.size(); ++a) {
    for (std::size_t b = 0; b < chip.cores.size(); ++b) {
      const auto& route = chip.route(CoreId(a), CoreId(b));
      RC_ASSERT(static_cast<int>(route.size()) == (hops[a][b] >= kFar ? 0 : hops[a][b]));
      RC_ASSERT(chip.connected(CoreId(a), CoreId(b)) == (hops[a][b] < kFar));
    }
  }
}

RC_GTEST_PROP(Routes, LeadWhereTheyShould, ()) {
  Chip chip = random_chip();
  make_routes(chip);
  for (std::size_t a = 0; a < chip.cores.size(); ++a) {
    for (std::size_t b = 0; b < chip.cores.size(); ++b) {
      // Cores that may have been reached after each link of the route.
      std::vector<CoreId> here{CoreId(a)};
      for (const LinkId id : chip.route(CoreId(a), CoreId(b))) {
        std::vector<CoreId> next;
        for (const CoreId core : chip.links[id.index()].cores) {
          for (const CoreId from : here) {
            if (joins(chip.links[id.index()], from, core))
              next.push_back(core);
          }
        }
        here = next;
      }
      RC_ASSERT(!chip.connected(CoreId(a), CoreId(b)) ||
                std::find(here.begin(), here.end(), CoreId(b)) != here.end());
    }
  }
}

TEST(Routes, TiesGoToTheLowestLink) {
  // 0 to 3 by way of 1 (links 1 and 2) or of 2 (links 0 and 3): the first link decides.
  Chip chip;
  chip.cores.resize(4);
  const auto add = [&](std::size_t from, std::size_t to) {
    chip.links.push_back({"", {CoreId(from), CoreId(to)}, LinkReach::forward, 1});
  };
  add(0, 2);
  add(0, 1);
  add(1, 3);
  add(2, 3);
  make_routes(chip);
  EXPECT_EQ(chip.route(CoreId(std::size_t{0}), CoreId(std::size_t{3})),
            (std::vector<LinkId>{LinkId(std::size_t{0}), LinkId(std::size_t{3})}));
}

/// A ring of arrays 0-1-2-3 with a pooling core 4 joined to 0 and 2: two hops from 0 to 2 by way of
/// 4 (link 0), 1 (link 2) or 3 (link 4).
Chip ring_with_a_helper() {
  Chip chip;
  chip.cores.resize(5);
  chip.cores[4].kind = CoreKind::pooling;
  const auto add = [&](std::size_t from, std::size_t to) {
    chip.links.push_back({"", {CoreId(from), CoreId(to)}, LinkReach::forward, 8});
  };
  add(0, 4);
  add(4, 2);
  add(0, 1);
  add(1, 2);
  add(0, 3);
  add(3, 2);
  return chip;
}

std::vector<std::uint32_t> route_of(const Chip& chip, std::size_t from, std::size_t to) {
  std::vector<std::uint32_t> route;
  for (const LinkId id : chip.route(CoreId(from), CoreId(to)))
    route.push_back(id.value);
  return route;
}

TEST(Routes, PreferArraysOverHelpersAndWideLinks) {
  Chip chip = ring_with_a_helper();
  make_routes(chip);
  EXPECT_EQ(route_of(chip, 0, 2), (std::vector<std::uint32_t>{2, 3}));
  chip.links[4].bandwidth_bits_per_cycle = 16;
  make_routes(chip);
  EXPECT_EQ(route_of(chip, 0, 2), (std::vector<std::uint32_t>{2, 3})); // 5 is as narrow as before
  chip.links[5].bandwidth_bits_per_cycle = 9;
  make_routes(chip);
  EXPECT_EQ(route_of(chip, 0, 2), (std::vector<std::uint32_t>{4, 5}));
}

TEST(Routes, PassThroughRoutersOnly) {
  Chip chip = ring_with_a_helper();
  chip.routers = {true, false, true, false, true};
  make_routes(chip);
  EXPECT_EQ(route_of(chip, 0, 2), (std::vector<std::uint32_t>{0, 1}));
  chip.routers[4] = false;
  make_routes(chip);
  EXPECT_TRUE(route_of(chip, 0, 2).empty());
  EXPECT_EQ(route_of(chip, 0, 1), (std::vector<std::uint32_t>{2}));
}

TEST(Routes, ASecondWayAvoidsTheFirst) {
  Chip chip = ring_with_a_helper();
  make_routes(chip);
  const CoreId from(std::size_t{0});
  const CoreId to(std::size_t{2});
  EXPECT_EQ(second_route(chip, from, to),
            (std::vector<LinkId>{LinkId(std::size_t{4}), LinkId(std::size_t{5})}));
  EXPECT_TRUE(second_route(chip, from, CoreId(std::size_t{1})).empty());
}

TEST(Routes, OffchipLinksJoinNoTwoCores) {
  Chip chip;
  chip.cores.resize(3);
  const CoreId a(std::size_t{0});
  const CoreId b(std::size_t{1});
  const CoreId dram(std::size_t{2});
  chip.offchip = dram;
  chip.links.push_back({"dram read", {a, b, dram}, LinkReach::offchip_read, 1});
  make_routes(chip);
  EXPECT_TRUE(chip.connected(dram, a));
  EXPECT_FALSE(chip.connected(a, dram));
  EXPECT_FALSE(chip.connected(a, b));
  chip.links[0].reach = LinkReach::offchip_both;
  make_routes(chip);
  EXPECT_TRUE(chip.connected(b, dram));
  EXPECT_FALSE(chip.connected(a, b));
}

TEST(Routes, ALargeBusTakesNoTime) {
  Chip chip;
  chip.cores.resize(500);
  chip.links.push_back({"bus", {}, LinkReach::any_pair, 1});
  for (std::size_t i = 0; i < chip.cores.size(); ++i)
    chip.links[0].cores.emplace_back(i);
  for (int copy = 0; copy < 9; ++copy)
    chip.links.push_back(chip.links[0]);
  make_routes(chip);
  EXPECT_EQ(chip.route(CoreId(std::size_t{7}), CoreId(std::size_t{499})).size(), 1U);
}

} // namespace
} // namespace monet

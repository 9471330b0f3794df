// Random networks in random stacks: tiles partition, edges are those of the elements, ranks respect
// them.
#include "schedule/element_edges.hpp"
#include "schedule/random_cases.hpp"

#include "monet/base/errors.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace monet {
namespace MONET_TEST_FILE {

using testing::Random;

/// Iterations of the element by element witness that a case may take.
constexpr std::int64_t kMaxEffort = 100000;

/// Slices of some of the stacks.
std::vector<std::optional<StackSlices>>
random_slices(Random& random, const Graph& graph, const std::vector<std::vector<OpId>>& stacks) {
  std::vector<std::optional<StackSlices>> slices;
  for (const auto& members : stacks) {
    slices.emplace_back();
    if (members.empty() || random.chance(50))
      continue;
    StackSlices& own = slices.back().emplace();
    for (std::int64_t n = random.between(0, 2); n > 0; --n) {
      const OpId op = members[random.index(members.size())];
      const LoopNest& nest = graph.op(op).nest;
      const std::size_t dim = nest.dims.empty() ? 0 : random.index(nest.dims.size());
      if (dim < nest.dims.size() && may_slice(nest, dim))
        own.cuts.push_back({op, static_cast<std::uint32_t>(dim), random.between(1, 5)});
    }
    if (random.chance(20))
      own.halo = Halo::recomputed;
  }
  return slices;
}

struct Case {
  TrainingGraph step;
  Chip chip;
  MappingFile mapping;
  TilingOptions options;
  TileGraph tiles;
};

Case random_case(std::uint64_t seed, const testing::NetworkShape& shape) {
  Random random(seed);
  Case c;
  c.step = testing::random_step(random, shape);
  c.chip = testing::random_chip(random, {});
  c.mapping = testing::random_mapping(random, c.step.graph, c.chip);
  c.options.mode = TilingMode::fused;
  if (random.chance(70))
    c.options.mapping = &c.mapping;
  if (random.chance(80))
    c.options.stacks = random_stacks(random, c.step.graph);
  if (random.chance(30))
    c.options.halo = Halo::recomputed;
  if (c.options.stacks && random.chance(60))
    c.options.slices = random_slices(random, c.step.graph, *c.options.stacks);
  c.tiles = make_tiles(c.step, c.chip, c.options);
  return c;
}

/// Pairs of tiles whose regions meet, by tile of the writer.
std::vector<std::pair<TileId, TileId>> meeting(const Case& c, OpId reader, OpId writer) {
  const Graph& graph = c.step.graph;
  const auto boxes = [&](std::uint32_t tile, TensorId tensor, bool reads) {
    std::vector<Box> result;
    for (const Access& access : graph.op(c.tiles.tiles[tile].op).nest.operands) {
      if (access.tensor == tensor && (access.mode == AccessMode::read) == reads)
        result.push_back(region(access, c.tiles.ranges(TileId(tile)), graph.tensor(tensor).shape));
    }
    return result;
  };
  std::vector<std::pair<TileId, TileId>> pairs;
  const auto [first, last] = c.tiles.tiles_of(reader);
  const auto [from, to] = c.tiles.tiles_of(writer);
  for (std::uint32_t w = from; w < to; ++w) {
    for (std::uint32_t r = first; r < last; ++r) {
      bool meet = false;
      for (const TensorId output : present(graph.op(writer).outputs)) {
        const auto storage = graph.tensor(output).alias_of;
        for (const Box& a : storage ? boxes(r, *storage, true) : std::vector<Box>{}) {
          for (Box b : boxes(w, output, false)) {
            for (std::size_t i = 0; i < b.size(); ++i)
              b[i] = intersect(a[i], b[i]);
            meet = meet || volume(b) > 0;
          }
        }
      }
      if (meet)
        pairs.emplace_back(r, w);
    }
  }
  return pairs;
}

/// How many anti-dependences are told by tiles.
int check_anti_dependences(const Case& c) {
  int by_tiles = 0;
  for (const AntiDependence& order : c.tiles.anti_dependences) {
    EXPECT_LT(order.reader, order.writer);
    if (order.tiles.empty())
      continue;
    ++by_tiles;
    EXPECT_EQ(order.tiles, meeting(c, order.reader, order.writer));
  }
  return by_tiles;
}

void check(const Case& c) {
  verify(c.tiles, c.step);
  const Graph& graph = c.step.graph;
  std::int64_t done = 0;
  std::int64_t needed = 0;
  for (std::size_t t = 0; t < c.tiles.tiles.size(); ++t) {
    if (graph.op(c.tiles.tiles[t].op).nest.compute == ComputeKind::mac)
      done += volume(c.tiles.ranges(TileId(t)));
  }
  for (const Operator& op : graph.operators())
    needed += macs(op.nest);
  EXPECT_EQ(recomputed_macs(c.tiles, graph), done - needed);
  const bool recomputes = c.options.halo == Halo::recomputed ||
                          std::any_of(c.options.slices.begin(), c.options.slices.end(),
                                      [](const auto& slices) { return slices && slices->halo; });
  if (!recomputes) {
    EXPECT_EQ(done, needed);
    if (testing::effort_of_edges(graph) <= kMaxEffort) {
      const auto wrong = testing::wrong_edges(testing::plain(c.tiles), graph);
      EXPECT_FALSE(wrong) << *wrong;
    }
  }
}

void check_cases(std::uint64_t first, int count, const testing::NetworkShape& shape) {
  for (std::uint64_t seed = first; seed < first + static_cast<std::uint64_t>(count); ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    try {
      check(random_case(seed, shape));
    } catch (const std::exception& error) {
      ADD_FAILURE() << error.what();
    }
    if (::testing::Test::HasFailure())
      return;
  }
}

TEST(FusedTiles, of_random_networks) {
  check_cases(1, 1500, {});
}

TEST(FusedTiles, of_random_training_steps) {
  check_cases(50001, 700, {.operators = 4, .training = true});
}

TEST(FusedTiles, updates_wait_for_readers_of_their_regions) {
  int by_tiles = 0;
  for (std::uint64_t seed = 60001; seed <= 60400; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    by_tiles += check_anti_dependences(random_case(seed, {.operators = 4, .training = true}));
  }
  EXPECT_GT(by_tiles, 100);
}

TEST(FusedTiles, automatic_fusion_given_as_plan_makes_the_same_tiles) {
  std::size_t sliced = 0;
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    Random random(seed);
    const TrainingGraph step =
        testing::random_step(random, {.operators = 6, .training = seed % 3 == 0});
    const Chip chip = testing::random_chip(random, {});
    TilingOptions options;
    options.mode = TilingMode::fused;
    options.halo = random.chance(30) ? Halo::recomputed : Halo::cached;
    const TileGraph chosen = make_tiles(step, chip, options);
    FusionPlan plan = automatic_fusion(step, chip, options);
    for (const auto& slices : plan.slices)
      sliced += slices && !slices->cuts.empty() ? 1 : 0;
    options.stacks = std::move(plan.stacks);
    options.slices = std::move(plan.slices);
    const TileGraph given = make_tiles(step, chip, options);
    EXPECT_EQ(given.stack_of, chosen.stack_of);
    EXPECT_EQ(given.rank, chosen.rank);
    for (std::size_t i = 0; i < chosen.operators.size(); ++i)
      EXPECT_EQ(given.operators[i].parts, chosen.operators[i].parts);
  }
  EXPECT_GT(sliced, 3U);
}

} // namespace MONET_TEST_FILE
} // namespace monet

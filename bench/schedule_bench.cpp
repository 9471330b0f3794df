// Time to place tiles whose core costs are known, against the number of tiles: growth must stay
// near n log n.
#include "schedule/event_scheduler.hpp"
#include "schedule/fixed_costs.hpp"
#include "schedule/hand_tiles.hpp"
#include "schedule/small_steps.hpp"

#include <benchmark/benchmark.h>

#include <deque>

namespace monet {
namespace {

/// A training-like step over 8 cores: a chain of element-wise operators cut in 8, each with a
/// weight, and backward operators that read the stored activations in reverse; memory holds about a
/// sixteenth of them.
struct Step {
  testing::StepBuilder builder;
  Chip chip;
  TileGraph tiles;
  std::deque<CoreProblem> problems;
  std::deque<CoreCost> costs;
  std::vector<TileCost> tile_costs;

  explicit Step(std::int64_t tile_count) {
    const std::int64_t layers = tile_count / 16;
    TensorId at = builder.source("x", {64, 16}, TensorKind::input);
    std::vector<TensorId> kept{at};
    for (std::int64_t i = 0; i < layers; ++i) {
      const TensorId weight = builder.source(fmt::format("w{}", i), {64, 16});
      at = builder.elementwise(fmt::format("a{}", i), {at, weight});
      kept.push_back(at);
    }
    for (std::int64_t i = layers; i-- > 0;) {
      const TensorId stored = kept[static_cast<std::size_t>(i)];
      at = builder.elementwise(fmt::format("g{}", i), {at, stored}, Phase::backward);
    }
    builder.output(at);
    const std::int64_t slice = 64 * 16 * 32 / 8;
    chip = testing::make_chip(
        {.cores = 8, .core_bits = slice * (4 + layers / 16), .link_bandwidth = 64, .bus = true});
    const testing::HandSplit split{8, {0, 1, 2, 3, 4, 5, 6, 7}};
    tiles = testing::hand_tiles(builder.step(), std::vector<testing::HandSplit>(
                                                    2 * static_cast<std::size_t>(layers), split));
    for (std::size_t t = 0; t < tiles.tiles.size(); ++t) {
      const Tile& tile = tiles.tiles[t];
      problems.push_back(core_problem(tile, tiles.ranges(TileId(t)), builder.step(), chip));
      costs.push_back(testing::simple_cost(problems.back(), chip.cores[tile.core.index()]));
      tile_costs.push_back({&problems.back(), &costs.back()});
    }
  }
};

void place(benchmark::State& state) {
  const Step step(state.range(0));
  // What is timed is right: every invariant holds.
  verify(place_tiles(step.tiles, step.builder.step(), step.chip, step.tile_costs), step.tiles,
         step.builder.step(), step.chip);
  for (auto _ : state) {
    benchmark::DoNotOptimize(
        place_tiles(step.tiles, step.builder.step(), step.chip, step.tile_costs).makespan);
  }
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(step.tiles.tiles.size()));
  state.SetComplexityN(state.range(0));
}
BENCHMARK(place)
    ->Arg(1 << 10)
    ->Arg(1 << 11)
    ->Arg(1 << 13)
    ->Arg(1 << 15)
    ->Arg(100000)
    ->Unit(benchmark::kMillisecond)
    ->Complexity(benchmark::oNLogN);

} // namespace
} // namespace monet

BENCHMARK_MAIN();

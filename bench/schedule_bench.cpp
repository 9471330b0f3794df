// Time and memory of cutting steps into tiles and of placing the tiles, core costs known, against
// the number of tiles. Both must grow no faster than n log n.
#include "fused_steps.hpp"
#include "heap_peak.hpp"
#include "schedule/schedule_alone.hpp"

#include "monet/base/errors.hpp"
#include "monet/schedule/schedule.hpp"

#include <benchmark/benchmark.h>

#include <functional>
#include <map>
#include <memory>

namespace monet {
namespace {

using bench::FusedStep;

/// verify(TileGraph) compares all pairs of tiles: seconds beyond this.
constexpr std::size_t kMaxPairsVerified = 5000;
constexpr std::size_t kMaxVerified = 200000;

/// A step with its tiles and every core cost it needs; both products hold their invariants.
struct Prepared {
  FusedStep fused;
  TileGraph tiles;
  CoreCostCache costs;
  double bytes_per_tile = 0; ///< most heap that tiling and scheduling have in use together

  explicit Prepared(FusedStep step) : fused(std::move(step)) {
    (void)testing::schedule_alone(fused.tiles(), fused.step, fused.chip,
                                  costs); // solves the core costs
    const std::size_t before = bench::heap_in_use();
    bench::reset_heap_peak();
    tiles = fused.tiles();
    const Timeline timeline = testing::schedule_alone(tiles, fused.step, fused.chip, costs);
    bytes_per_tile =
        static_cast<double>(bench::heap_peak() - before) / static_cast<double>(tiles.tiles.size());
    internal_check(timeline.runs.size() == tiles.tiles.size(), "not every tile runs once");
    if (tiles.tiles.size() <= kMaxPairsVerified)
      verify(tiles, fused.step);
    if (tiles.tiles.size() <= kMaxVerified)
      verify(timeline, tiles, fused.step, fused.chip);
  }
};

enum class Case { inference, training, resnet18 };

/// Made once for both benchmarks of a size.
const Prepared& prepared(Case kind, std::int64_t tiles) {
  static std::map<std::pair<Case, std::int64_t>, std::unique_ptr<Prepared>> made;
  auto& entry = made[{kind, tiles}];
  if (!entry) {
    for (auto& other : made)
      other.second.reset(); // a million tiles at a time are enough
    entry = std::make_unique<Prepared>(kind == Case::resnet18
                                           ? bench::resnet18_rows(MONET_SOURCE_DIR "/data")
                                           : bench::conv_chain(tiles, kind == Case::training));
  }
  return *entry;
}

void report(benchmark::State& state, const Prepared& p) {
  const auto tiles = static_cast<std::int64_t>(p.tiles.tiles.size());
  state.SetItemsProcessed(state.iterations() * tiles);
  state.SetComplexityN(tiles);
  state.counters["tiles"] = static_cast<double>(tiles);
  state.counters["edges/tile"] =
      static_cast<double>(p.tiles.edges.size()) / static_cast<double>(tiles);
  state.counters["bytes/tile"] = p.bytes_per_tile;
}

void tile_graph(benchmark::State& state, Case kind) {
  const Prepared& p = prepared(kind, state.range(0));
  for (auto _ : state)
    benchmark::DoNotOptimize(p.fused.tiles().tiles.size());
  report(state, p);
}

void schedule_tiles(benchmark::State& state, Case kind) {
  const Prepared& p = prepared(kind, state.range(0));
  auto& costs = const_cast<CoreCostCache&>(p.costs); // every cost is known: nothing changes
  for (auto _ : state)
    benchmark::DoNotOptimize(
        testing::schedule_alone(p.tiles, p.fused.step, p.fused.chip, costs).makespan);
  report(state, p);
}

void sizes(benchmark::internal::Benchmark* b) {
  for (const std::int64_t tiles : {1000, 10000, 100000, 1000000})
    b->Arg(tiles);
  b->Unit(benchmark::kMillisecond)->Complexity(benchmark::oAuto);
}
BENCHMARK_CAPTURE(tile_graph, resnet18, Case::resnet18)->Arg(0)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(schedule_tiles, resnet18, Case::resnet18)->Arg(0)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(tile_graph, inference, Case::inference)->Apply(sizes);
BENCHMARK_CAPTURE(schedule_tiles, inference, Case::inference)->Apply(sizes);
BENCHMARK_CAPTURE(tile_graph, training, Case::training)->Apply(sizes);
BENCHMARK_CAPTURE(schedule_tiles, training, Case::training)->Apply(sizes);

} // namespace
} // namespace monet

BENCHMARK_MAIN();

// Mappings evaluated per second on one thread. Each case checks its answer before it is timed.
#include "core_cost/cores.hpp"

#include "monet/core_cost/core_cost.hpp"

#include <benchmark/benchmark.h>

namespace {

using monet::test::convolution;
using monet::test::ConvProduct;

monet::CoreProblem layer(ConvProduct which) {
  return convolution({.b = 4,
                      .k = 128,
                      .ox = 16,
                      .oy = 16,
                      .c = 64,
                      .fx = 3,
                      .fy = 3,
                      .stride = 2,
                      .padding = 1,
                      .ix = 32,
                      .iy = 32},
                     which, 32, 32);
}

void report(benchmark::State& state, const monet::CoreProblem& problem,
            const monet::CoreCostOptions& options) {
  const monet::Core core = monet::test::tpu_like(true);
  std::int64_t evaluated = 0;
  for (auto _ : state) {
    const monet::CoreCost cost = monet::core_cost(problem, core, options);
    evaluated += cost.effort.visited;
    benchmark::DoNotOptimize(cost.latency);
  }
  state.counters["mappings/s"] =
      benchmark::Counter(static_cast<double>(evaluated), benchmark::Counter::kIsRate);
}

// Reference: ZigZag 3.8.5 finds 356353 cycles after 720 mappings.
void fully_connected(benchmark::State& state) {
  monet::CoreCostOptions options;
  options.fixed_dataflow = true;
  const monet::CoreProblem problem = monet::test::product(768, 128, 3072);
  if (monet::core_cost(problem, monet::test::tpu_like(true), options).latency.value != 356353) {
    state.SkipWithError("wrong latency");
    return;
  }
  report(state, problem, options);
}
BENCHMARK(fully_connected);

void convolution_products(benchmark::State& state) {
  const monet::CoreProblem problem = layer(static_cast<ConvProduct>(state.range(0)));
  const monet::CoreCost cost = monet::core_cost(problem, monet::test::tpu_like(true));
  if (cost.latency < cost.ideal) {
    state.SkipWithError("faster than the array");
    return;
  }
  report(state, problem, {});
}
BENCHMARK(convolution_products)->Arg(0)->Arg(1)->Arg(2);

void cached(benchmark::State& state) {
  monet::CoreCostCache cache;
  const monet::Core core = monet::test::tpu_like(true);
  const monet::CoreProblem problem = layer(ConvProduct::forward);
  const monet::CoreCost* first = &cache.get(problem, core, {});
  for (auto _ : state) {
    if (&cache.get(problem, core, {}) != first)
      state.SkipWithError("solved again");
  }
}
BENCHMARK(cached);

} // namespace

BENCHMARK_MAIN();

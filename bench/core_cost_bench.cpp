// Mappings evaluated per second on one thread. Each case checks its answer before it is timed.
#include "core_cost/model/candidate.hpp"
#include "core_cost/cores.hpp"
#include "core_cost/order_walk.hpp"
#include "core_cost/search/spatial_choice.hpp"
#include "core_cost/search/temporal_order.hpp"
#include "resnet18.hpp"

#include "monet/core_cost/core_cost.hpp"

#include <benchmark/benchmark.h>

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

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

/// A layer with all its orders, ready to evaluate.
struct Prepared {
  monet::core_cost_detail::NestModel model;
  monet::core_cost_detail::Hierarchy hierarchy;
  monet::core_cost_detail::SpatialModel spatial;
  std::size_t loops = 0;
  std::vector<monet::core_cost_detail::Loop> orders; ///< one after another
};

Prepared prepare(const monet::CoreProblem& problem, const monet::Core& core) {
  using namespace monet::core_cost_detail;
  Prepared p;
  p.model = make_nest_model(problem, monet::ModelChoices::zigzag_3_8());
  p.hierarchy = make_hierarchy(problem, p.model, core);
  p.spatial = make_spatial_model(
      p.model, p.hierarchy,
      from_dataflow(p.model, p.hierarchy, unroll_caps(p.model, p.hierarchy), core.dataflow));
  OrderWalk walk(p.model, temporal_factors(p.spatial.temporal, 6));
  p.loops = walk.size();
  std::vector<Loop> order(p.loops);
  while (walk.next(order.data()))
    p.orders.insert(p.orders.end(), order.begin(), order.end());
  return p;
}

/// Latency and energy of the best order: the fastest, then the most frugal.
std::pair<double, double> best_order(const Prepared& p,
                                     monet::core_cost_detail::Candidate& candidate) {
  std::pair<double, double> best{1e300, 1e300};
  candidate.size = p.loops;
  for (std::size_t at = 0; at < p.orders.size(); at += p.loops) {
    std::copy_n(p.orders.begin() + static_cast<std::ptrdiff_t>(at), p.loops,
                candidate.loops.begin());
    if (evaluate(p.model, p.hierarchy, p.spatial, candidate))
      best = std::min(best, {candidate.latency.total(), candidate.energy.total()});
  }
  return best;
}

// Reference: ZigZag 3.8.5, 3703960.5 cycles and 1871436380.656 pJ at its default search.
void resnet18_candidates(benchmark::State& state) {
  const monet::Core core = monet::test::tpu_like(true);
  std::vector<Prepared> layers;
  for (const monet::CoreProblem& problem : monet::bench::resnet18_layers())
    layers.push_back(prepare(problem, core));
  monet::core_cost_detail::Candidate candidate;
  double latency = 0;
  double energy = 0;
  std::size_t orders = 0;
  for (const Prepared& p : layers) {
    const auto [cycles, pj] = best_order(p, candidate);
    latency += cycles;
    energy += pj;
    orders += p.orders.size() / p.loops;
  }
  if (latency != 3703960.5 || std::abs(energy - 1871436380.656) > 1e-3) {
    state.SkipWithError("not ZigZag's optimum");
    return;
  }
  for (auto _ : state) {
    for (const Prepared& p : layers)
      benchmark::DoNotOptimize(best_order(p, candidate));
  }
  state.counters["candidates/s"] =
      benchmark::Counter(static_cast<double>(orders) * static_cast<double>(state.iterations()),
                         benchmark::Counter::kIsRate);
}
BENCHMARK(resnet18_candidates)->Unit(benchmark::kMillisecond);

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

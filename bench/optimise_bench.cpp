// Time of planning what a chain of layers runs again: by dynamic programming, 1,000 layers of
// random costs and sizes and 500 levels of memory, and by the integer program with its proof, 16
// equal layers; at budgets in per cent of what keeping everything takes.
#include "base/shared/rng.hpp"
#include "optimise/shared/chain_dp.hpp"
#include "optimise/shared/recompute_exact.hpp"

#include "monet/base/errors.hpp"

#include <benchmark/benchmark.h>

#include <vector>

namespace monet {
namespace {

std::vector<ChainLayer> random_layers(std::size_t count) {
  RandomStream random(1);
  const auto draw = [&] { return 1 + static_cast<std::int64_t>(random.below(1000)); };
  std::vector<ChainLayer> layers(count);
  for (ChainLayer& layer : layers)
    layer = {draw(), 2 * draw(), draw(), random.below(2) == 0 ? 0 : draw(), draw()};
  return layers;
}

std::int64_t budget_of(const RecomputeProblem& problem, std::int64_t percent) {
  return replay(problem, store_everything(problem)).peak_bytes * percent / 100;
}

/// The plan's own memory and cost, replayed.
void check(const RecomputeProblem& problem, std::int64_t budget, const RecomputeResult& found) {
  internal_check(found.plan.has_value(), "no plan found");
  const RecomputeOutcome outcome = replay(problem, *found.plan);
  internal_check(outcome.peak_bytes <= budget && outcome.cost == found.outcome.cost &&
                     static_cast<double>(outcome.cost) >= found.bound,
                 "a plan that does not hold");
}

void chain(benchmark::State& state) {
  const std::vector<ChainLayer> layers = random_layers(static_cast<std::size_t>(state.range(0)));
  const RecomputeProblem problem = chain_problem(layers);
  const std::int64_t budget = budget_of(problem, state.range(1));
  const RecomputeResult found = solve_chain(layers, budget, 500);
  check(problem, budget, found);
  for (auto _ : state)
    benchmark::DoNotOptimize(solve_chain(layers, budget, 500));
  state.counters["overhead_%"] = 100 * (static_cast<double>(found.outcome.cost) / found.bound - 1);
}
BENCHMARK(chain)
    ->ArgNames({"layers", "percent"})
    ->ArgsProduct({{1000}, {60, 40, 20, 10, 5, 3}})
    ->Unit(benchmark::kMillisecond);

void proof(benchmark::State& state) {
  const std::vector<ChainLayer> layers(16, {1, 1, 1, 0, 1});
  const RecomputeProblem problem = chain_problem(layers);
  const std::int64_t budget = budget_of(problem, state.range(0));
  RecomputeExactOptions options;
  const auto solve = [&] {
    const RecomputeResult start = solve_chain(layers, budget, 500);
    options.starts = {*start.plan};
    return solve_recompute(problem, budget, {}, options);
  };
  const RecomputeResult found = solve();
  check(problem, budget, found);
  internal_check(static_cast<double>(found.outcome.cost) == found.bound, "not proven");
  for (auto _ : state)
    benchmark::DoNotOptimize(solve());
  state.counters["overhead_%"] =
      100 * (static_cast<double>(found.outcome.cost - problem.base_cost()) /
             static_cast<double>(problem.base_cost()));
}
BENCHMARK(proof)
    ->ArgName("percent")
    ->DenseRange(30, 90, 10)
    ->Arg(35)
    ->Unit(benchmark::kMillisecond);

} // namespace
} // namespace monet

BENCHMARK_MAIN();

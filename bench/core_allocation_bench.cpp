// Time of scheduling 1,000 allocations of ResNet-18 to the quad core's cores, inference, fused:
// stacks and slices of the tool, and rows times quarters of the channels as the reference's mapping
// has them. On two threads; core costs are found on the way.
#include "base/shared/rng.hpp"
#include "fused_steps.hpp"
#include "schedule/schedule_alone.hpp"

#include "monet/base/errors.hpp"
#include "monet/optimise/allocation.hpp"

#include <benchmark/benchmark.h>

#include <vector>

namespace monet {
namespace {

constexpr std::size_t kPlans = 1000;

std::vector<AllocationPlan> random_plans(const AllocationEvaluator& evaluator) {
  RandomStream random(1);
  std::vector<AllocationPlan> plans(kPlans);
  for (AllocationPlan& plan : plans) {
    for (const auto& choices : evaluator.choices())
      plan.push_back(static_cast<std::uint32_t>(random.below(choices.size())));
  }
  return plans;
}

/// Some of the answers, found by the stages themselves.
void check(AllocationEvaluator& evaluator, const bench::FusedStep& made, TilingOptions options,
           const std::vector<AllocationPlan>& plans) {
  CoreCostCache costs;
  for (std::size_t i = 0; i < plans.size(); i += 250) {
    const CoreAllocation allocation = evaluator.allocation(plans[i]);
    options.allocation = &allocation;
    const Timeline timeline = testing::schedule_alone(make_tiles(made.step, made.chip, options),
                                                      made.step, made.chip, costs);
    const StepFigures cost = evaluator.evaluate(plans[i]);
    internal_check(cost.feasible && cost.latency_cycles == timeline.makespan.value &&
                       cost.energy == energy_of(timeline),
                   "a plan costs something else than its schedule");
  }
}

void allocations(benchmark::State& state, bool rows) {
  const bench::FusedStep made = bench::resnet18_rows(MONET_SOURCE_DIR "/data");
  TilingOptions options;
  options.mode = TilingMode::fused;
  if (rows) {
    options.mapping = &made.mapping;
    options.stacks.emplace(1);
    for (std::size_t i = 0; i < made.step.graph.operators().size(); ++i)
      options.stacks->front().emplace_back(i);
  }
  SearchControl control;
  control.jobs = 2;
  std::size_t tiles = 0;
  for (auto _ : state) {
    AllocationEvaluator evaluator(made.step, made.chip, options, {});
    const std::vector<AllocationPlan> plans = random_plans(evaluator);
    benchmark::DoNotOptimize(evaluator.evaluate(plans, control));
    state.PauseTiming();
    check(evaluator, made, options, plans);
    tiles = evaluator.tiles(plans.front()).tiles.size();
    state.ResumeTiming();
  }
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(kPlans));
  state.counters["tiles"] = static_cast<double>(tiles);
}
BENCHMARK_CAPTURE(allocations, own_stacks, false)->Unit(benchmark::kSecond)->UseRealTime();
BENCHMARK_CAPTURE(allocations, rows, true)->Unit(benchmark::kSecond)->UseRealTime();

} // namespace
} // namespace monet

BENCHMARK_MAIN();

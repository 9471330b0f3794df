// What a planner asks of a pipeline: the time of a step, with schedules of shapes seen before and
// without. Each case checks its answer against the simulation before it is timed.
#include "monet/cluster/pipeline.hpp"

#include <benchmark/benchmark.h>

#include <cstdint>

namespace {

/// Stages that differ by up to a quarter, and sends of a tenth of a pass.
monet::PipelineProblem unequal_stages(monet::PipelineKind kind, const benchmark::State& state) {
  monet::PipelineProblem q;
  q.kind = kind;
  q.stages = state.range(0);
  q.chunks = state.range(1);
  q.micro_batches = state.range(2);
  for (std::int64_t i = 0; i < q.stages * q.chunks; ++i)
    q.costs.push_back({100'000 + i * 7919 % 25'000, 100'000 + i * 104'729 % 25'000, 100'000});
  q.forward_sends.assign(q.costs.size() - 1, 10'000);
  q.backward_sends = q.forward_sends;
  return q;
}

bool pipeline_is_right(const monet::PipelineProblem& q, monet::PipelineScratch& scratch) {
  return monet::pipeline_times(q, scratch) ==
         static_cast<const monet::PipelineTimes&>(monet::simulate(q));
}

void known_shape(benchmark::State& state, monet::PipelineKind kind) {
  const monet::PipelineProblem q = unequal_stages(kind, state);
  monet::PipelineScratch scratch;
  if (!pipeline_is_right(q, scratch))
    return state.SkipWithError("not what is simulated");
  for (auto _ : state)
    benchmark::DoNotOptimize(monet::pipeline_times(q, scratch));
  state.SetItemsProcessed(state.iterations());
}

void new_shape(benchmark::State& state, monet::PipelineKind kind) {
  const monet::PipelineProblem q = unequal_stages(kind, state);
  monet::PipelineScratch scratch;
  if (!pipeline_is_right(q, scratch))
    return state.SkipWithError("not what is simulated");
  for (auto _ : state)
    benchmark::DoNotOptimize(monet::makespan(q));
  state.SetItemsProcessed(state.iterations());
}

void simulated(benchmark::State& state, monet::PipelineKind kind) {
  const monet::PipelineProblem q = unequal_stages(kind, state);
  monet::PipelineScratch scratch;
  if (!pipeline_is_right(q, scratch))
    return state.SkipWithError("not what is simulated");
  for (auto _ : state)
    benchmark::DoNotOptimize(monet::simulate(q).makespan);
  state.SetItemsProcessed(state.iterations());
}

using monet::PipelineKind;

// Stages, chunks, micro-batches.
BENCHMARK_CAPTURE(known_shape, interleaved, PipelineKind::interleaved)
    ->Args({8, 3, 64})
    ->Args({8, 3, 512})
    ->Args({64, 8, 512});
BENCHMARK_CAPTURE(known_shape, gpipe, PipelineKind::gpipe)->Args({8, 1, 64})->Args({64, 1, 512});
BENCHMARK_CAPTURE(known_shape, one_f_one_b, PipelineKind::one_f_one_b)
    ->Args({8, 1, 64})
    ->Args({8, 1, 512})
    ->Args({64, 1, 512});
BENCHMARK_CAPTURE(known_shape, h1, PipelineKind::zero_bubble_h1)->Args({8, 1, 64});
BENCHMARK_CAPTURE(known_shape, h2, PipelineKind::zero_bubble_h2)->Args({8, 1, 64});
BENCHMARK_CAPTURE(known_shape, v, PipelineKind::zero_bubble_v)->Args({8, 2, 64});
BENCHMARK_CAPTURE(new_shape, interleaved, PipelineKind::interleaved)->Args({8, 3, 64});
BENCHMARK_CAPTURE(new_shape, one_f_one_b, PipelineKind::one_f_one_b)->Args({8, 1, 64});
BENCHMARK_CAPTURE(simulated, interleaved, PipelineKind::interleaved)->Args({8, 3, 64});

} // namespace

BENCHMARK_MAIN();

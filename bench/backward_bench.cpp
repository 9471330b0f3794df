// The optimum of a layer's backward pass on the NPUs of docs/explanation/backward-dataflow.md, on one thread.
// Each case checks its answers before it is timed.
#include "monet/core_cost/backward.hpp"

#include <benchmark/benchmark.h>

#include <cstdint>
#include <vector>

namespace {

monet::NpuMachine npu(bool large) {
  monet::NpuMachine machine;
  machine.rows = machine.columns = large ? 128 : 45;
  machine.buffer_bits = std::int64_t{8 << 20} * (large ? 8 : 1);
  machine.bandwidth_bits = large ? 8000 : 176;
  machine.bandwidth_cycles = large ? 7 : 1;
  return machine;
}

/// Of ResNet-50, MobileNet, BERT-large and DLRM, batch 4.
std::vector<monet::GemmPair> layers() {
  return {{"3x3, 56", 12544, 576, 64},    {"1x1, 56", 12544, 64, 256},
          {"3x3, 14", 784, 2304, 256},    {"1x1, 7", 196, 512, 2048},
          {"classifier", 4, 2048, 1000},  {"pointwise", 12544, 32, 64},
          {"query", 512, 1024, 1024},     {"feed-forward", 512, 1024, 4096},
          {"feed-back", 512, 4096, 1024}, {"embedding", 4, 512, 256}};
}

std::int64_t total(const monet::NpuMachine& machine, monet::Technique technique) {
  std::int64_t cycles = 0;
  for (const monet::GemmPair& pair : layers())
    cycles += monet::backward_cost(pair, machine, technique).latency_cycles;
  return cycles;
}

/// Nothing is faster than the joint optimum, and it is not faster than any schedule can be.
bool right(const monet::NpuMachine& machine) {
  for (const monet::GemmPair& pair : layers()) {
    const std::int64_t joint =
        monet::backward_cost(pair, machine, monet::Technique::joint).latency_cycles;
    if (joint < monet::backward_bound(pair, machine).latency_cycles)
      return false;
    for (const monet::Technique t :
         {monet::Technique::best_sequential, monet::Technique::best_of_three}) {
      if (monet::backward_cost(pair, machine, t).latency_cycles < joint)
        return false;
    }
  }
  return true;
}

void optimum(benchmark::State& state, monet::Technique technique) {
  const monet::NpuMachine machine = npu(state.range(0) != 0);
  if (!right(machine)) {
    state.SkipWithError("not the optimum");
    return;
  }
  for (auto _ : state)
    benchmark::DoNotOptimize(total(machine, technique));
  state.counters["s/layer"] = benchmark::Counter(static_cast<double>(layers().size()),
                                                 benchmark::Counter::kIsIterationInvariantRate |
                                                     benchmark::Counter::kInvert);
}

void best_sequential(benchmark::State& state) {
  optimum(state, monet::Technique::best_sequential);
}
BENCHMARK(best_sequential)->Arg(0)->Arg(1)->Unit(benchmark::kMillisecond);

void joint(benchmark::State& state) {
  optimum(state, monet::Technique::joint);
}
BENCHMARK(joint)->Arg(0)->Arg(1)->Unit(benchmark::kMillisecond);

} // namespace

BENCHMARK_MAIN();

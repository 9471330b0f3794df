// Time to place the buffers of the eleven MiniMalloc instances within their capacity.
#include "training_graph/memory/allocation_files.hpp"

#include <benchmark/benchmark.h>

namespace monet {
namespace {

void place(benchmark::State& state) {
  const std::vector<BufferRequest> requests = read_instance(static_cast<char>(state.range(0)));
  AllocationOptions options;
  options.capacity = kInstanceCapacity;
  Allocation allocation = allocate(requests, options);
  verify(requests, allocation);
  if (allocation.height > kInstanceCapacity) {
    state.SkipWithError("does not fit");
    return;
  }
  for (auto _ : state) {
    allocation = allocate(requests, options);
    benchmark::DoNotOptimize(allocation.height);
  }
  state.SetLabel(std::string(1, static_cast<char>(state.range(0))));
  state.counters["buffers"] = static_cast<double>(requests.size());
  state.counters["nodes"] = static_cast<double>(allocation.nodes);
}
BENCHMARK(place)->DenseRange('A', 'K')->Unit(benchmark::kMillisecond);

} // namespace
} // namespace monet

BENCHMARK_MAIN();

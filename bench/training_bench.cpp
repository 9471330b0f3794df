// The time to build training graphs: it has to grow with the number of operators, no faster.
#include "gpt.hpp"

#include "monet/base/errors.hpp"
#include "monet/training_graph/training.hpp"
#include "monet/workload/onnx_reader.hpp"

#include <benchmark/benchmark.h>

namespace monet {
namespace {

/// 12 h^2 weights a layer with biases and norms, token and position embeddings, the last norm.
std::int64_t parameters_of(const bench::GptShape& shape) {
  const std::int64_t h = shape.width;
  return shape.layers * (12 * h * h + 13 * h) + (shape.vocabulary + shape.tokens) * h + 2 * h;
}

Graph read_gpt(const bench::GptShape& shape) {
  Graph graph = read_onnx_bytes(bench::GptMaker(shape).bytes(), "gpt.onnx");
  internal_check(parameter_count(graph) == parameters_of(shape),
                 "the network has the wrong number of parameters");
  return graph;
}

void check(const TrainingGraph& step, std::int64_t layers) {
  verify(step);
  internal_check(step.parameters.size() == static_cast<std::size_t>(12 * layers + 4),
                 "not every parameter is trained");
  const MacSplit macs = count_macs(step.graph);
  internal_check(macs.backward_input + macs.backward_weight == 2 * macs.forward,
                 "backward is not twice the forward part");
}

void report(benchmark::State& state, const TrainingGraph& step) {
  const auto operators = static_cast<double>(step.graph.operators().size());
  state.counters["operators"] = operators;
  state.counters["us_per_operator"] =
      benchmark::Counter(operators * 1e-6, benchmark::Counter::kIsIterationInvariantRate |
                                               benchmark::Counter::kInvert);
}

/// GPT-2, read apart.
void build_gpt2(benchmark::State& state) {
  const Graph network = read_gpt({});
  const TrainingOptions options;
  check(make_training_graph(network, options), 12);
  for (auto _ : state)
    benchmark::DoNotOptimize(make_training_graph(network, options));
  report(state, make_training_graph(network, options));
}
BENCHMARK(build_gpt2)->Unit(benchmark::kMillisecond);

/// GPT-3's layers, 1 to 96 of them.
void build_gpt3(benchmark::State& state) {
  const auto layers = static_cast<int>(state.range(0));
  const Graph network = read_gpt(bench::gpt3(layers));
  const TrainingOptions options;
  check(make_training_graph(network, options), layers);
  for (auto _ : state)
    benchmark::DoNotOptimize(make_training_graph(network, options));
  report(state, make_training_graph(network, options));
}
BENCHMARK(build_gpt3)->RangeMultiplier(2)->Range(1, 64)->Arg(96)->Unit(benchmark::kMillisecond);

void read_gpt3(benchmark::State& state) {
  const std::string bytes = bench::GptMaker(bench::gpt3()).bytes();
  for (auto _ : state)
    benchmark::DoNotOptimize(read_onnx_bytes(bytes, "gpt.onnx"));
}
BENCHMARK(read_gpt3)->Unit(benchmark::kMillisecond);

void fold_gpt3(benchmark::State& state) {
  const TrainingGraph step = make_training_graph(read_gpt(bench::gpt3()), {});
  for (auto _ : state)
    benchmark::DoNotOptimize(fold_views(step));
}
BENCHMARK(fold_gpt3)->Unit(benchmark::kMillisecond);

void verify_gpt3(benchmark::State& state) {
  const TrainingGraph step = make_training_graph(read_gpt(bench::gpt3()), {});
  for (auto _ : state)
    verify(step);
}
BENCHMARK(verify_gpt3)->Unit(benchmark::kMillisecond);

} // namespace
} // namespace monet

BENCHMARK_MAIN();

// What `monet graph --execute` does with a network: its numbers, and those of a training step.
#include "monet/execute/execute.hpp"

#include "readers/readers.hpp"
#include "target.hpp"

#include "monet/base/stop.hpp"
#include "monet/base/yaml.hpp"
#include "monet/workload/onnx_reader.hpp"

#include <chrono>
#include <iterator>
#include <variant>
#include <vector>

namespace monet::fuzz {

namespace {

TrainingGraph step_of(const Graph& network, std::uint64_t choice) {
  if (choice % 2 == 0)
    return make_inference_graph(network, {});
  constexpr const char* kTraining[]{"{loss: cross_entropy, optimizer: sgd}",
                                    "{loss: mse, optimizer: {type: adam, amsgrad: true}}",
                                    "{loss: none, optimizer: momentum, clip_global_norm: 1.0}",
                                    "{loss: l1, optimizer: adafactor, update: unfused}",
                                    "{loss: huber, optimizer: muon, micro_batches: 2}",
                                    "{loss: mse, store: pytorch-eager, precision: bf16}",
                                    "{loss: mse, sam: 0.05, ema: 0.9}",
                                    "{loss: mse, store: {recompute: ['*']}, attention: fused}"};
  ProblemList problems;
  const TrainingOptions options = read_training_options(
      parse_yaml(kTraining[choice / 2 % std::size(kTraining)], "training.yaml"), problems);
  problems.throw_if_any();
  return make_training_graph(network, options);
}

/// A network may ask for more than there is time for.
bool takes_long(const Graph& graph) {
  constexpr double kMaxIterations = 3e6;
  double sum = 0;
  for (const Operator& op : graph.operators()) {
    double product = 1;
    for (const LoopDim& dim : op.nest.dims)
      product *= static_cast<double>(dim.size);
    sum += product;
  }
  return sum > kMaxIterations;
}

void run_step(const TrainingGraph& step, std::string_view model, const ExecuteOptions& options) {
  Execution execution(step.graph, options);
  for (const auto& [name, values] : read_onnx_weights_bytes(model, "fuzz.onnx")) {
    std::visit(
        [&, &called = name](const auto& list) {
          const std::vector<double> numbers(list.begin(), list.end());
          set_by_name(execution, step, called, numbers);
        },
        values);
  }
  fill(execution, step, 1);
  constexpr int kSteps = 2;
  for (int i = 1; i <= kSteps; ++i) {
    if (i > 1)
      execution.advance();
    set_step_number(execution, step, i);
    execution.run();
  }
  for (const TensorId output : step.graph.outputs) {
    if (execution.has(output))
      execution.get(output);
  }
}

} // namespace

void execute_network(std::string_view model) {
  OnnxReadOptions reading;
  reading.batch = 2;
  const Graph network = read_onnx_bytes(model, "fuzz.onnx", reading);
  const std::uint64_t choice = variation(model);
  const TrainingGraph step = step_of(network, choice / 2);
  verify(step);
  if (takes_long(step.graph))
    return;
  const StopScope scope(StopRequest{nullptr, StopRequest::Clock::now() + std::chrono::seconds(3)});
  ExecuteOptions options;
  options.arithmetic = choice % 2 == 0 ? Arithmetic::fp64 : Arithmetic::fp32;
  options.keep_all = false;
  options.memory_limit_bytes = std::int64_t{1} << 26;
  run_step(step, model, options);
}

} // namespace monet::fuzz

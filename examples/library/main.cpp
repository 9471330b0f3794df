// Models one training step: model_a_step NETWORK.onnx CHIP.yaml
#include <monet/hardware/read_hardware.hpp>
#include <monet/optimise/step_mode.hpp>
#include <monet/workload/onnx_reader.hpp>

#include <cstdio>
#include <exception>

int main(int argc, char** argv) try {
  if (argc != 3)
    return 2;
  const monet::Chip chip = monet::read_chip(argv[2]);
  monet::OnnxReadOptions reading;
  reading.batch = 4;
  const monet::Graph network = monet::read_onnx(argv[1], reading);
  const monet::TrainingGraph step = monet::fold_views(monet::make_training_graph(network, {}));
  monet::CoreCostCache costs;
  // Layer by layer or fused, whichever takes fewer cycles; model_step() would model one of them.
  const monet::StepChoice choice = monet::choose_step(
      step, chip, {}, {monet::StepMode::automatic, monet::Objective::latency}, costs);
  const monet::StepFigures& figures = choice.figures;
  std::printf("%lld cycles, %.3f mJ, at most %.1f MiB\n",
              static_cast<long long>(figures.latency_cycles), figures.energy_pj / 1e9,
              static_cast<double>(figures.peak_memory_bytes) / (1 << 20));
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}

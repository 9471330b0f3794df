#include <monet/training/training.hpp>
#include <monet/workload/onnx_reader.hpp>

#include <cstdio>
#include <exception>

int main(int argc, char** argv) {
  if (argc != 2)
    return 2;
  try {
    monet::OnnxReadOptions options;
    options.batch = 2;
    const monet::Graph network = monet::read_onnx(argv[1], options);
    const monet::TrainingGraph step = monet::make_training_graph(network, {});
    std::printf("%lld parameters, %zu operators in a training step\n",
                static_cast<long long>(monet::parameter_count(network)),
                step.graph.operators().size());
    return step.graph.operators().size() > network.operators().size() ? 0 : 1;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}

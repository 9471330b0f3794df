// monet optimise allocation: which cores run which operator.
#include "optimise.hpp"

#include <CLI/CLI.hpp>

#include <memory>

namespace monet::cli {

Action add_optimise_allocation(CLI::App& optimise) {
  struct Arguments {
    OptimiseArguments common;
  };
  auto arguments = std::make_shared<Arguments>();
  CLI::App* command =
      optimise.add_subcommand("allocation", "Which cores run each operator, and in how many parts");
  arguments->common.add_to(*command);
  command->footer(
      "Example: monet optimise allocation --hardware data/hardware/tpu_like_quad_core.yaml "
      "--workload data/workload/resnet18_cifar.onnx --batch 1");
  return [arguments](Session& session) -> int {
    const SearchInputs inputs = prepare(arguments->common, "latency", session);
    throw UsageError("optimise allocation is not available yet");
  };
}

} // namespace monet::cli

// monet optimise checkpointing: which stored activations are made again.
#include "optimise.hpp"

#include <CLI/CLI.hpp>

#include <memory>

namespace monet::cli {

Action add_optimise_checkpointing(CLI::App& optimise) {
  struct Arguments {
    OptimiseArguments common;
    CheckpointingArguments own;
  };
  auto arguments = std::make_shared<Arguments>();
  CLI::App* command = optimise.add_subcommand(
      "checkpointing",
      "Which activations are kept for the backward pass, and which are made again");
  arguments->common.add_to(*command);
  command->add_option("--log", arguments->own.log, "Operator log in place of a step")
      ->type_name("LOG");
  command->footer(
      "Example: monet optimise checkpointing --hardware data/hardware/tpu_like_quad_core.yaml "
      "--workload data/workload/resnet18_cifar.onnx --batch 1");
  return [arguments](Session& session) -> int {
    if (!arguments->own.log.empty())
      return optimise_log(arguments->common, arguments->own, session);
    const SearchInputs inputs = prepare(arguments->common, "latency", session);
    throw UsageError("optimise checkpointing is not available yet");
  };
}

} // namespace monet::cli

// monet optimise fusion: which operators run together, slice by slice.
#include "optimise.hpp"

#include <CLI/CLI.hpp>

#include <memory>

namespace monet::cli {

Action add_optimise_fusion(CLI::App& optimise) {
  struct Arguments {
    OptimiseArguments common;
    FusionArguments own;
  };
  auto arguments = std::make_shared<Arguments>();
  CLI::App* command =
      optimise.add_subcommand("fusion", "Which operators run together, slice by slice");
  arguments->common.add_to(*command);
  command
      ->add_option("--model", arguments->own.model,
                   "monet, or einsum: one core, operator by operator")
      ->check(CLI::IsMember({"monet", "einsum"}))
      ->capture_default_str();
  arguments->own.einsum.add_to(*command);
  command->footer("Example: monet optimise fusion --hardware data/hardware/tpu_like_quad_core.yaml "
                  "--workload data/workload/resnet18_cifar.onnx --batch 1");
  return [arguments](Session& session) -> int {
    if (arguments->own.model == "einsum")
      return optimise_einsum(arguments->common, arguments->own, session);
    const SearchInputs inputs = prepare(arguments->common, "latency", session);
    throw UsageError("optimise fusion is not available yet");
  };
}

} // namespace monet::cli

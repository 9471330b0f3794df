// monet optimise: searches, each with the best it found, a bound that nothing beats, and the gap.
#include "optimise.hpp"

#include <CLI/CLI.hpp>

#include <memory>

namespace monet::cli {

Action add_optimise_command(CLI::App& app) {
  CLI::App* command = app.add_subcommand(
      "optimise",
      "Searches for better ways to run a step, and bounds how much better any could be");
  command->require_subcommand(1);
  using Searches = std::vector<std::pair<std::string, Action>>;
  auto searches =
      std::make_shared<Searches>(Searches{{"allocation", add_optimise_allocation(*command)},
                                          {"fusion", add_optimise_fusion(*command)},
                                          {"checkpointing", add_optimise_checkpointing(*command)},
                                          {"joint", add_optimise_joint(*command)}});
  command->footer("Ctrl-C and --time-limit end a search with the best so far and its gap.\n"
                  "Example: monet optimise fusion --hardware data/hardware/tpu_like_quad_core.yaml "
                  "--workload data/workload/resnet18_cifar.onnx --batch 1");
  return [command, searches](Session& session) {
    session.context.stop = nullptr; // Ctrl-C ends the search, not what leads up to it
    for (const auto& [name, action] : *searches) {
      if (command->got_subcommand(name))
        return action(session);
    }
    return kExitUsage;
  };
}

} // namespace monet::cli

// monet optimise: searches, each with the best it found, a bound that nothing beats, and the gap.
#include "commands/optimise.hpp"

namespace monet::cli {

void add_optimise_command(Command& monet) {
  Command& command = monet.add_command(
      "optimise",
      "Searches for better ways to run a step, and bounds how much better any could be");
  add_optimise_allocation(command);
  add_optimise_fusion(command);
  add_optimise_checkpointing(command);
  add_optimise_joint(command);
  add_optimise_parallelism(command);
  for (Command& search : command.commands) {
    search.action = [action = search.action](Session& session) {
      // What leads up to a search may come to its end, if that is near: then there is a result.
      session.context.stop.grace = kFirstPlanGrace;
      return action(session);
    };
  }
  command.footer =
      "Ctrl-C and --time-limit end a search with the best so far and its gap.\n"
      "Example: monet optimise fusion --hardware data/hardware/tpu_like_quad_core.yaml "
      "--workload data/workload/resnet18_cifar.onnx --batch 1";
}

} // namespace monet::cli

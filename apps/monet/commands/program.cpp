// The program: its subcommands, and those of `monet optimise`, in the order of --help.
#include "commands/optimise.hpp"

namespace monet::cli {

Command monet_program() {
  Command monet{"monet", "Models one training step of a neural network on an accelerator: latency, "
                         "energy and memory."};
  monet.footer =
      "Exit codes: 0 ok, 2 usage, 3 bad input, 4 infeasible, 5 output that cannot be written,\n"
      "70 internal error, 130 interrupted, 141 nobody reads standard output, 143 terminated.\n"
      "Example: monet run examples/edge_resnet18_cifar.yaml";
  add_run_command(monet);
  add_graph_command(monet);
  add_core_command(monet);
  add_backward_command(monet);
  add_schedule_command(monet);
  add_optimise_command(monet);
  add_explore_command(monet);
  add_formats_command(monet);
  add_cluster_command(monet);
  add_train_command(monet);
  add_report_command(monet);
  return monet;
}

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

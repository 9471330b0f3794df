// The program: its subcommands in the order of --help.
#include "commands/commands.hpp"

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

} // namespace monet::cli

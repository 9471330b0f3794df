// Builds the command line: the subcommands, and those of `monet optimise`, in the order of --help.
// main() and the Python package call it.
#include "commands/optimise.hpp"

#include "monet/base/stop.hpp"

#include <fmt/core.h>

#include <algorithm>

namespace monet::cli {

Command monet_program() {
  Command monet{
      "monet",
      "Model one training step of a neural network on an accelerator: latency, energy and memory"};
  monet.footer =
      "Exit codes: 0 success, 1 a condition of --fail-if holds, 2 usage error, 3 invalid input, 4 "
      "infeasible, 5 output cannot be "
      "written,\n70 internal error, 130 interrupted, 141 standard output closed by its reader, 143 "
      "terminated.\nExample: monet run examples/edge_resnet18_cifar.yaml";
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
  add_explain_command(monet);
  add_compare_command(monet);
  add_validate_command(monet);
  return monet;
}

namespace {

/// Place of the value of --time-limit in seconds; null if the command lacks the option.
const double* time_limit_of(const Command& command) {
  const auto found = std::ranges::find(command.options, "--time-limit", &Option::name);
  return found == command.options.end() ? nullptr : std::get<double*>(found->target);
}

} // namespace

void add_optimise_command(Command& monet) {
  Command& command =
      monet.add_command("optimise", "Search for better plans of a step, and compute lower bounds");
  add_optimise_allocation(command);
  add_optimise_fusion(command);
  add_optimise_checkpointing(command);
  add_optimise_joint(command);
  add_optimise_parallelism(command);
  for (Command& search : command.commands) {
    search.action = [action = search.action, limit = time_limit_of(search)](Session& session) {
      // Stages before a search may exceed its deadline by a short grace period, so that there is a
      // result.
      session.context.stop.grace = kFirstPlanGrace;
      try {
        return action(session);
      } catch (const Stopped& stopped) {
        if (!stopped.by_clock() || limit == nullptr || *limit <= 0)
          throw;
        throw Stopped(fmt::format("no plan yet after {:g} s ({}); allow more with --time-limit",
                                  *limit, stopped.what()),
                      true);
      }
    };
  }
  command.footer =
      "Ctrl-C or --time-limit ends a search; it reports the best result so far and its gap to the "
      "bound.\nExample: monet optimise fusion --hardware data/hardware/tpu_like_quad_core.yaml "
      "--workload data/workload/resnet18_cifar.onnx --batch 1";
}

} // namespace monet::cli

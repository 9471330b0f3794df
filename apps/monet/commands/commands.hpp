// Subcommands of `monet`. Each function adds a subcommand and its action to the command line.
#pragma once

#include "console.hpp"
#include "options/command_line.hpp"

namespace monet::cli {

/// Command line with all subcommands.
Command monet_program();

void add_run_command(Command& monet);
void add_graph_command(Command& monet);
void add_core_command(Command& monet);
void add_backward_command(Command& monet);
void add_schedule_command(Command& monet);
void add_optimise_command(Command& monet);
void add_explore_command(Command& monet);
void add_formats_command(Command& monet);
void add_cluster_command(Command& monet);
void add_train_command(Command& monet);
void add_report_command(Command& monet);
void add_validate_command(Command& monet);
void add_compare_command(Command& monet);
void add_explain_command(Command& monet);

} // namespace monet::cli

// The subcommands. Each adds itself to the parser and returns what runs it.
#pragma once

#include "console.hpp"

#include <functional>

namespace CLI {
class App;
}

namespace monet::cli {

/// Runs a subcommand whose options have been parsed; returns the exit code, throws for failures.
using Action = std::function<int(Session&)>;

Action add_run_command(CLI::App& app);
Action add_graph_command(CLI::App& app);
Action add_core_command(CLI::App& app);
Action add_schedule_command(CLI::App& app);
Action add_optimise_command(CLI::App& app);
Action add_explore_command(CLI::App& app);
Action add_report_command(CLI::App& app);

} // namespace monet::cli

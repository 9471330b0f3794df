// monet: the command line. Exit codes: 0 ok, 2 usage, 3 bad input, 4 infeasible, 70 our bug, 130
// interrupted.
#include "commands.hpp"
#include "version.hpp"

#include "monet/base/errors.hpp"
#include "monet/base/text.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <atomic>
#include <csignal>
#include <new>

namespace {

using namespace monet::cli;

/// Set by the signal handler, which can reach nothing but static storage.
std::atomic<bool> interrupted{false};
static_assert(std::atomic<bool>::is_always_lock_free);

extern "C" void on_interrupt(int signal) {
  interrupted.store(true);
  std::signal(signal, SIG_DFL); // a second Ctrl-C ends the process at once
}

int report_failure(const std::exception& error, int code, const char* prefix = "error: ") {
  print_message(prefix, error.what());
  return code;
}

int run(const Action& action) {
  try {
    Session session;
    session.interrupted = &interrupted;
    session.context.stop = &interrupted;
    return action(session);
  } catch (const UsageError& error) {
    return report_failure(error, kExitUsage);
  } catch (const monet::InputError& error) {
    return report_failure(error, kExitInput);
  } catch (const monet::InfeasibleError& error) {
    return report_failure(error, kExitInfeasible, "infeasible: ");
  } catch (const monet::Stopped& error) {
    return report_failure(error, kExitInterrupted, "");
  } catch (const std::bad_alloc&) {
    print_message("error: ", "out of memory");
    return kExitInternal;
  } catch (const std::exception& error) {
    return report_failure(error, kExitInternal);
  }
}

} // namespace

int main(int argc, char** argv) {
  std::signal(SIGINT, on_interrupt);
  CLI::App app{"Models one training step of a neural network on an accelerator: latency, energy "
               "and memory."};
  app.name("monet");
  app.set_version_flag("--version", fmt::format("monet {} ({})", version(), git_hash()));
  app.require_subcommand(1);
  app.footer(
      "Exit codes: 0 ok, 2 usage, 3 bad input, 4 infeasible, 70 internal error, 130 interrupted.\n"
      "Example: monet run examples/edge_resnet18_cifar.yaml");
  const std::vector<std::pair<std::string, Action>> actions{
      {"run", add_run_command(app)},           {"graph", add_graph_command(app)},
      {"core", add_core_command(app)},         {"schedule", add_schedule_command(app)},
      {"optimise", add_optimise_command(app)}, {"explore", add_explore_command(app)},
      {"report", add_report_command(app)}};
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (argc > 1 && error.get_name() == "RequiredError" && app.get_subcommands().empty()) {
      std::vector<std::string> names;
      for (const auto& [name, action] : actions)
        names.push_back(name);
      const std::string hint = monet::nearest_name_hint(argv[1], names);
      print_message("error: ", fmt::format("'{}' is no subcommand{}", argv[1],
                                           hint.empty() ? "; see --help" : ": " + hint));
      return kExitUsage;
    }
    return app.exit(error) == 0 ? kExitOk : kExitUsage;
  }
  for (const auto& [name, action] : actions) {
    if (app.got_subcommand(name))
      return run(action);
  }
  return kExitUsage;
}

// monet: the command line. Exit codes: 0 ok, 2 usage, 3 bad input, 4 infeasible, 5 output that
// cannot be written, 70 our bug, 130 interrupted, 141 nobody reads standard output.
#include "commands/commands.hpp"
#include "version.hpp"

#include "monet/base/errors.hpp"
#include "monet/report/text.hpp"

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
    print_problems(error);
    return kExitInput;
  } catch (const monet::InfeasibleError& error) {
    return report_failure(error, kExitInfeasible, "infeasible: ");
  } catch (const monet::OutputError& error) {
    print_message("error: ",
                  monet::printable(error.what())); // one line, whatever the place is called
    return kExitOutput;
  } catch (const ClosedPipe&) {
    return kExitClosedPipe;
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
  prepare_streams();
  std::signal(SIGINT, on_interrupt);
  Command monet{"monet", "Models one training step of a neural network on an accelerator: latency, "
                         "energy and memory."};
  monet.footer =
      "Exit codes: 0 ok, 2 usage, 3 bad input, 4 infeasible, 5 output that cannot be written,\n"
      "70 internal error, 130 interrupted, 141 nobody reads standard output.\n"
      "Example: monet run examples/edge_resnet18_cifar.yaml";
  add_run_command(monet);
  add_graph_command(monet);
  add_core_command(monet);
  add_schedule_command(monet);
  add_optimise_command(monet);
  add_explore_command(monet);
  add_report_command(monet);
  return run_program(monet, std::string("monet ") + version() + " (" + git_hash() + ")", argc, argv,
                     run);
}

// monet: the command line. Exit codes: 0 ok, 2 usage, 3 bad input, 4 infeasible, 5 output that
// cannot be written, 70 our bug, 130 interrupted, 141 nobody reads standard output, 143 terminated.
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
std::atomic<bool> terminated{false};
static_assert(std::atomic<bool>::is_always_lock_free);

/// Ctrl-C, or a job scheduler that wants its machine back.
extern "C" void on_interrupt(int signal) {
  terminated.store(signal == SIGTERM);
  interrupted.store(true);
  for (const int any : {SIGINT, SIGTERM}) // a second one ends the process at once
    std::signal(any, SIG_DFL);
}

int report_failure(const std::exception& error, int code, const char* prefix = "error: ") {
  print_message(prefix, error.what());
  return code;
}

int interrupted_code() {
  return terminated.load() ? kExitTerminated : kExitInterrupted;
}

int run(const Action& action) {
  try {
    Session session;
    session.interrupted = &interrupted;
    session.context.stop.flag = &interrupted;
    const monet::StopScope scope(&session.context.stop);
    const int code = action(session);
    return code == kExitInterrupted ? interrupted_code() : code;
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
    if (error.by_clock())
      return report_failure(error, kExitInfeasible, "infeasible: ");
    return report_failure(error, interrupted_code(), "");
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
  std::signal(SIGTERM, on_interrupt);
  Command monet = monet_program();
  const std::string with = components().empty() ? "none" : components();
  return run_program(monet, "monet " + version() + " (" + git_hash() + ")\ncomponents: " + with,
                     argc, argv, run);
}

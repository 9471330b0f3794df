// Entry point of the `monet` command: runs a subcommand and maps failures to exit codes. These are
// 0 ok, 2 usage, 3 bad input, 4 infeasible, 5 output not writable, 70 bug in MONET, 130
// interrupted, 141 standard output closed by its reader, 143 terminated.
#include "base/shared/amounts.hpp"
#include "commands/commands.hpp"
#include "options/memory_budget.hpp"
#include "report/shared/text.hpp"
#include "version.hpp"

#include "monet/base/errors.hpp"

#include <fmt/core.h>

#include <atomic>
#include <csignal>
#include <new>
#include <string>
#include <system_error>

namespace {

using namespace monet::cli;

/// Flags set by the signal handler, which can access only static storage.
std::atomic<bool> interrupted{false};
std::atomic<bool> terminated{false};
static_assert(std::atomic<bool>::is_always_lock_free);

/// Handles Ctrl-C, or SIGTERM from a job scheduler.
extern "C" void on_interrupt(int signal) {
  interrupted.store(true);
  terminated.store(signal == SIGTERM);
  for (const int any : {SIGINT, SIGTERM}) // a second signal ends the process at once
    std::signal(any, SIG_DFL);
}

int report_failure(const std::exception& error, int code, const char* prefix = "error: ") {
  print_message(prefix, error.what());
  return code;
}

int interrupted_code() {
  return terminated.load() ? kExitTerminated : kExitInterrupted;
}

/// Reports that the machine lacks memory or threads for the request.
int report_shortage(std::string_view what, std::string_view stage) {
  print_message("infeasible: ",
                fmt::format("{}{}; the process may use {} of memory", what,
                            stage.empty() ? "" : fmt::format(" in stage '{}'", stage),
                            monet::both_bytes(machine_memory_bytes())));
  return kExitInfeasible;
}

/// Reports a command that a signal or a time limit ended before it had a result.
int report_stop(const monet::Stopped& stopped, const std::string& stage, const std::string& kept) {
  if (stopped.by_clock())
    return report_failure(stopped, kExitInfeasible);
  const std::string where = stage.empty() ? "" : fmt::format(" in stage '{}'", stage);
  print_message("",
                fmt::format("{}{}; {}", stopped.what(), where,
                            kept.empty() ? "no result was written" : "written before: " + kept));
  return interrupted_code();
}

int run(const Action& action) {
  std::string stage; ///< the last stage that began
  std::string kept;  ///< results that were written before
  try {
    Session session;
    session.kept = &kept;
    session.context.begins = [&session, &stage](std::string_view name) {
      stage = name;
      session.progress.stage(name);
    };
    session.interrupted = &interrupted;
    session.terminated = &terminated;
    session.progress.note_stop(&interrupted, &terminated);
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
                  monet::printable(error.what())); // one line, whatever the name of the place
    return kExitOutput;
  } catch (const ClosedPipe&) {
    return kExitClosedPipe;
  } catch (const monet::Stopped& error) {
    return report_stop(error, stage, kept);
  } catch (const std::bad_alloc&) {
    return report_shortage("out of memory", stage);
  } catch (const std::system_error& error) {
    if (error.code() == std::errc::resource_unavailable_try_again)
      return report_shortage("no thread can be started", stage);
    return report_failure(error, kExitInternal);
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

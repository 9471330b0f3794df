// Everything the tool prints goes through here: results to stdout, messages to stderr, files whole
// or not at all.
#pragma once

#include "monet/base/errors.hpp"
#include "monet/base/files.hpp"
#include "monet/base/stage.hpp"
#include "monet/base/warnings.hpp"
#include "monet/optimise/search.hpp"

#include <nlohmann/json_fwd.hpp>

#include <chrono>
#include <condition_variable>
#include <functional>
#include <limits>
#include <map>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>

namespace monet::cli {

using Json = nlohmann::ordered_json;

inline constexpr int kExitOk = 0;
inline constexpr int kExitUsage = 2;
inline constexpr int kExitInput = 3;
inline constexpr int kExitInfeasible = 4;
inline constexpr int kExitOutput = 5;
inline constexpr int kExitInternal = 70;
inline constexpr int kExitInterrupted = 130; ///< by SIGINT; commands return it for SIGTERM, too
inline constexpr int kExitTerminated = 143;
inline constexpr int kExitClosedPipe = 141; // as of a program that SIGPIPE ends

/// The command line is wrong (exit code 2).
class UsageError : public std::runtime_error {
public:
  using std::runtime_error::runtime_error;
};

/// Nobody reads what is printed any more, as behind `| head` (exit code 141, without a message).
class ClosedPipe : public std::runtime_error {
public:
  ClosedPipe() : std::runtime_error("nobody reads standard output") {}
};

/// Writes that fail return an error in place of ending the process, and no file that is opened is
/// taken for a standard stream that the caller has closed. First of all.
void prepare_streams();
/// OutputError where standard output is closed or only open for reading.
void check_standard_output();

/// What this thread's commands print while the object lives is kept in place of being printed.
class CapturedOutput {
public:
  CapturedOutput();
  ~CapturedOutput();
  CapturedOutput(const CapturedOutput&) = delete;
  CapturedOutput& operator=(const CapturedOutput&) = delete;

  std::string results;  ///< of print_result()
  std::string json;     ///< of write_json() for "-"
  std::string messages; ///< of print_message() and print_problems()

private:
  CapturedOutput* before_;
};

/// To stdout, made printable; OutputError when it cannot be written (a full disk), ClosedPipe where
/// nobody reads it.
void print_result(std::string_view text);

/// To stderr, each line with the prefix; control characters of user files do not reach the
/// terminal.
void print_message(std::string_view prefix, std::string_view text);

/// Each problem as a message of one line, whatever the names in it.
void print_problems(const InputError& error);

/// InputError with the place where it is not JSON, or is nested deeper than any result.
Json read_json(const std::string& path);
/// Writes JSON to the file, or to stdout for "-".
void write_json(const std::string& path, const Json& json);
/// The page of a result (report_html()).
std::string page_of(const Json& json);
/// The JSON where --json asks for it, and the table unless the JSON has taken standard output.
void write_output(const std::string& json_path, const Json& json, std::string_view table);

/// The places that a command writes its results to, tried before any work is done for them. Folders
/// are this command's alone while it lives.
class Outputs {
public:
  /// OutputError where the file cannot be written; standard output is "-", none "".
  void file(const std::string& path);
  /// OutputError where the folder cannot be made or written, or another run writes into it; none
  /// "".
  void folder(const std::string& path);

private:
  std::map<std::string, LockedFolder> folders_; ///< two options may name the same
};

/// Says on stderr what is going on, once a command takes longer than two seconds: on a terminal
/// which stage runs, and how far a search has come; elsewhere the searches alone, every few seconds
/// a line.
class Progress {
public:
  /// `quiet`: says nothing, ever.
  explicit Progress(bool quiet = false);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  /// Prints a warning on a line of its own, from any thread; not where the display is quiet.
  void warn(const InputProblem& warning);
  /// A stage begins; no search is under way.
  void stage(std::string_view name);
  /// From any thread, as often as it likes. `seconds_left`: until the search's deadline, if any.
  void search(const SearchProgress& state,
              double seconds_left = std::numeric_limits<double>::infinity());
  /// Where `flag` is set while a search is under way, and `at_once` is not, the display says how
  /// the search ends.
  void note_stop(const std::atomic<bool>* flag, const std::atomic<bool>* at_once);
  /// Told every search(), in its thread, in place of the display; empty: nobody.
  std::function<void(const SearchProgress&, double seconds_left)> listener;
  /// Since the command began.
  double seconds() const;

private:
  using Clock = std::chrono::steady_clock;
  struct Search {
    SearchProgress state; ///< its phase is `phase`
    std::string phase;
    std::int64_t first_done = 0; ///< of the phase
    Clock::time_point begin;     ///< of the phase
    double seconds_left = 0;
  };

  void watch(const std::stop_token& stop);
  std::string search_line() const;
  void clear_line();

  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::string stage_;
  std::optional<Search> search_;
  const std::atomic<bool>* stop_ = nullptr; ///< once it is set and shown, null again
  const std::atomic<bool>* stop_at_once_ = nullptr;
  bool line_drawn_ = false;
  bool terminal_;
  bool quiet_;
  Clock::time_point begin_;
  std::jthread watcher_; ///< last, so that it stops before the rest goes
};

struct OwnParts;

/// What all subcommands share.
struct Session {
  explicit Session(bool quiet = false)
      : progress(quiet), warnings([this](const InputProblem& warning) { progress.warn(warning); }) {
    context.begins = [this](std::string_view name) { progress.stage(name); };
  }

  StageContext context; ///< tells the progress display
  Outputs outputs;
  /// Ctrl-C or SIGTERM. Where searches run, context.stop is empty: they end by themselves, with
  /// what they have.
  const std::atomic<bool>* interrupted = nullptr;
  const std::atomic<bool>* terminated = nullptr; ///< SIGTERM
  const OwnParts* own = nullptr;                 ///< of an exploration (commands/explore.hpp)
  Progress progress;
  WarningScope warnings; ///< written with every result, too

  template <class... Functions>
  auto stage(std::string_view name, Functions&&... functions) {
    return run_stage(context, name, std::forward<Functions>(functions)...);
  }
};

} // namespace monet::cli

// Output of the tool: results go to stdout, messages to stderr, and files are written completely or
// not at all.
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
inline constexpr int kExitCondition = 1; ///< a condition of --fail-if holds
inline constexpr int kExitUsage = 2;
inline constexpr int kExitInput = 3;
inline constexpr int kExitInfeasible = 4;
inline constexpr int kExitOutput = 5;
inline constexpr int kExitInternal = 70;
inline constexpr int kExitInterrupted = 130; ///< by SIGINT; commands also return it for SIGTERM
inline constexpr int kExitTerminated = 143;
inline constexpr int kExitClosedPipe = 141; // code of a program that SIGPIPE ended

/// The command line is invalid (exit code 2).
class UsageError : public std::runtime_error {
public:
  using std::runtime_error::runtime_error;
};

/// The reader of standard output has closed it, as in `| head` (exit code 141, without a message).
class ClosedPipe : public std::runtime_error {
public:
  ClosedPipe() : std::runtime_error("standard output is closed by its reader") {}
};

/// Prepares the standard streams; must be called first. Writes that fail return an error instead of
/// ending the process. Opened files never replace a standard stream that the caller has closed.
void prepare_streams();
/// Throws OutputError if standard output is closed or open only for reading.
void check_standard_output();

/// Captures the output of this thread's commands while the object exists, instead of printing it.
class CapturedOutput {
public:
  CapturedOutput();
  ~CapturedOutput();
  CapturedOutput(const CapturedOutput&) = delete;
  CapturedOutput& operator=(const CapturedOutput&) = delete;

  std::string results;  ///< output of print_result()
  std::string json;     ///< output of write_json() for "-"
  std::string messages; ///< output of print_message() and print_problems()

private:
  CapturedOutput* before_;
};

/// Prints text to stdout, made printable. Throws OutputError if it cannot be written (a full disk),
/// or ClosedPipe if the reader has closed the pipe.
void print_result(std::string_view text);

/// Prints text to stderr, each line with the prefix; control characters are replaced.
void print_message(std::string_view prefix, std::string_view text);

/// Prints each problem as a message of one line, whatever names it contains.
void print_problems(const InputError& error);

/// Reads a JSON file. Throws InputError with the location if it is not JSON or is nested deeper
/// than any result.
Json read_json(const std::string& path);
/// Writes JSON, with this thread's warnings, to a file, or to stdout for "-".
void write_json(const std::string& path, const Json& json);
/// Page of a result, with this thread's warnings (report_html()).
std::string page_of(const Json& json);
/// Writes the JSON if `json_path` is not empty, and prints the table unless the JSON goes to
/// standard output.
void write_output(const std::string& json_path, const Json& json, std::string_view table);

/// Places that a command writes its results to, tested before any work starts. Folders are locked
/// while the object exists.
class Outputs {
public:
  /// Tests a file; throws OutputError if it cannot be written. "-" is standard output, "" no file.
  void file(const std::string& path);
  /// Locks a folder, which is created if needed; "" is no folder. Throws OutputError if it cannot
  /// be created or written, or if another run writes into it.
  void folder(const std::string& path);

private:
  std::map<std::string, LockedFolder> folders_; ///< by path: two options may name the same folder
};

/// Reports progress on stderr once a command has run for two seconds. A terminal shows the stage
/// and the state of a search. Other outputs contain only a line for a search every few seconds.
class Progress {
public:
  /// `quiet` disables all output.
  explicit Progress(bool quiet = false);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  /// Prints a warning on a separate line, unless the display is quiet; callable from any thread.
  void warn(const InputProblem& warning);
  /// Begins a stage and ends the display of a search.
  void stage(std::string_view name);
  /// Updates the state of a search; callable from any thread, at any rate. `seconds_left` is the
  /// time until the search's deadline.
  void search(const SearchProgress& state,
              double seconds_left = std::numeric_limits<double>::infinity());
  /// Sets the flags of stop requests. If `flag` is set during a search and `at_once` is not, the
  /// display explains how the search ends.
  void note_stop(const std::atomic<bool>* flag, const std::atomic<bool>* at_once);
  /// Receives every search() in its thread, in place of the display; may be empty.
  std::function<void(const SearchProgress&, double seconds_left)> listener;
  /// Seconds since the command began.
  double seconds() const;

private:
  using Clock = std::chrono::steady_clock;
  struct Search {
    SearchProgress state; ///< with `phase` as its phase
    std::string phase;
    std::int64_t first_done = 0; ///< `done` at the start of the phase
    Clock::time_point begin;     ///< start of the phase
    double seconds_left = 0;
  };

  void watch(const std::stop_token& stop);
  std::string search_line() const;
  void clear_line();

  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::string stage_;
  std::optional<Search> search_;
  const std::atomic<bool>* stop_ = nullptr; ///< null again once it is set and shown
  const std::atomic<bool>* stop_at_once_ = nullptr;
  bool line_drawn_ = false;
  bool terminal_;
  bool quiet_;
  Clock::time_point begin_;
  std::jthread watcher_; ///< last, so that it stops before other members are destroyed
};

struct OwnParts;

/// State shared by all subcommands.
struct Session {
  explicit Session(bool quiet = false)
      : progress(quiet), warnings([this](const InputProblem& warning) { progress.warn(warning); }) {
    context.begins = [this](std::string_view name) { progress.stage(name); };
  }

  StageContext context; ///< reports stages to the progress display
  Outputs outputs;
  /// Set by Ctrl-C or SIGTERM. During a search context.stop is empty: the search ends by itself and
  /// keeps its results.
  const std::atomic<bool>* interrupted = nullptr;
  const std::atomic<bool>* terminated = nullptr; ///< set by SIGTERM
  std::string* kept = nullptr;   ///< results written so far, named if the command is stopped
  const OwnParts* own = nullptr; ///< parts of an exploration (commands/explore.hpp)
  Progress progress;
  WarningScope warnings; ///< also written with every result

  template <class... Functions>
  auto stage(std::string_view name, Functions&&... functions) {
    return run_stage(context, name, std::forward<Functions>(functions)...);
  }
};

} // namespace monet::cli

// Console, JSON files and progress display of the tool (console.hpp), including capture for the
// Python package. Every command uses it.
#include "console.hpp"

#include "base/shared/file_kind.hpp"
#include "base/shared/text.hpp"
#include "report/shared/text.hpp"

#include "monet/report/result.hpp"

#include <fcntl.h>
#include <fmt/core.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <optional>
#include <system_error>

namespace monet::cli {

namespace {

/// Capture of this thread's output; null if output is printed.
thread_local CapturedOutput* captured = nullptr;

/// Writes text to stderr; errors are ignored.
void say(std::string_view text) {
  if (captured != nullptr) {
    captured->messages += text;
    return;
  }
  std::fwrite(text.data(), 1, text.size(), stderr);
}

/// Maximum nesting depth of a result; nested values are written recursively.
constexpr int kDeepest = 64;

SourceLoc location_in(const std::string& path, const std::string& text, std::size_t byte) {
  const std::string_view before = std::string_view(text).substr(0, byte > 0 ? byte - 1 : 0);
  const auto line = std::ranges::count(before, '\n') + 1;
  const std::size_t line_begin = before.rfind('\n') + 1; // npos + 1 = 0
  return {path, static_cast<int>(line), static_cast<int>(before.size() - line_begin + 1), {}};
}

} // namespace

CapturedOutput::CapturedOutput() : before_(captured) {
  captured = this;
}

CapturedOutput::~CapturedOutput() {
  captured = before_;
}

void prepare_streams() {
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::fcntl(stream, F_GETFD) < 0)
      ::open("/dev/null", O_RDONLY); // gets the lowest free number, and is not writable
  }
}

void check_standard_output() {
  if (captured != nullptr)
    return;
  const int mode = ::fcntl(STDOUT_FILENO, F_GETFL);
  if (mode < 0 || (mode & O_ACCMODE) == O_RDONLY)
    throw OutputError("standard output", "is closed");
}

namespace {

void print_bytes(std::string_view text) {
  const int reason = std::fflush(stdout) == 0 ? monet::write_to_reader(STDOUT_FILENO, text) : errno;
  if (reason == EPIPE)
    throw ClosedPipe();
  if (reason != 0)
    throw OutputError("standard output",
                      fmt::format("cannot be written: {}", std::strerror(reason)));
}

} // namespace

void print_result(std::string_view text) {
  if (captured != nullptr)
    captured->results += printable(text, true);
  else
    print_bytes(printable(text, true));
}

void print_problems(const InputError& error) {
  for (const InputProblem& problem : error.problems())
    print_message("error: ", printable(problem.to_string()));
}

void print_message(std::string_view prefix, std::string_view text) {
  const std::string clean = printable(text, true);
  std::string_view rest = clean;
  while (!rest.empty()) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    say(fmt::format("{}{}\n", prefix, line));
    rest.remove_prefix(std::min(rest.size(), line.size() + 1));
  }
}

Json read_json(const std::string& path) {
  const std::string text = read_file(path);
  if (json_depth(text) > kDeepest)
    throw InputError({path}, "is not a result: nested too deeply");
  try {
    return Json::parse(text);
  } catch (const Json::parse_error& error) {
    if (const auto format = binary_format(text))
      throw InputError({path}, fmt::format("this is {}, not a result", format->name), format->hint);
    throw InputError(location_in(path, text, error.byte), "is not valid JSON");
  } catch (const Json::out_of_range&) { // for example 1e400
    throw InputError({path}, "is not a result: it has a number that is too large");
  }
}

namespace {

/// JSON with the warnings of this thread's scope added, if there are any.
class WithWarnings {
public:
  explicit WithWarnings(const Json& json) : json_(json) {
    const WarningScope* scope = WarningScope::current();
    if (scope == nullptr || !json.is_object() || json.contains("warnings"))
      return;
    for (const InputProblem& warning : scope->warnings()) {
      if (!more_)
        more_ = json;
      (*more_)["warnings"].push_back({{"where", valid_utf8(warning.where.to_string())},
                                      {"message", valid_utf8(warning.what)},
                                      {"hint", valid_utf8(warning.hint)}});
    }
  }
  const Json& get() const { return more_ ? *more_ : json_; }

private:
  const Json& json_;
  std::optional<Json> more_;
};

} // namespace

std::string page_of(const Json& json) {
  return report_html(WithWarnings(json).get());
}

void write_json(const std::string& path, const Json& result) {
  const WithWarnings with_warnings(result);
  const Json& json = with_warnings.get();
  if (path != "-") {
    write_file_atomically(path, json_text(json) + "\n");
    return;
  }
  // ASCII is equivalent and has no effect on terminals
  const std::string text = json.dump(-1, ' ', true, Json::error_handler_t::replace) + "\n";
  if (captured != nullptr)
    captured->json += text;
  else
    print_bytes(text);
}

void write_output(const std::string& json_path, const Json& json, std::string_view table) {
  if (!json_path.empty())
    write_json(json_path, json);
  if (json_path != "-" || captured != nullptr) // captured output separates both
    print_result(table);
}

void Outputs::file(const std::string& path) {
  if (!path.empty() && path != "-")
    try_to_write(path);
}

void Outputs::folder(const std::string& path) {
  if (path.empty())
    return;
  std::error_code error;
  const std::filesystem::path real =
      std::filesystem::weakly_canonical(std::filesystem::absolute(path), error);
  folders_.try_emplace(error ? path : (real / "").string(), path);
}

Progress::Progress(bool quiet)
    : terminal_(::isatty(STDERR_FILENO) != 0), quiet_(quiet), begin_(Clock::now()) {
  try {
    if (!quiet)
      watcher_ = std::jthread([this](const std::stop_token& stop) { watch(stop); });
  } catch (const std::system_error&) { // no display without a thread
  }
}

Progress::~Progress() {
  const std::lock_guard lock(mutex_);
  clear_line();
}

void Progress::warn(const InputProblem& warning) {
  if (quiet_)
    return;
  const std::lock_guard lock(mutex_);
  clear_line();
  print_message("warning: ", printable(warning.to_string()));
}

void Progress::stage(std::string_view name) {
  const std::lock_guard lock(mutex_);
  stage_ = printable(name);
  search_.reset();
  clear_line();
  changed_.notify_all();
}

void Progress::search(const SearchProgress& state, double seconds_left) {
  if (listener) {
    listener(state, seconds_left);
    return;
  }
  const std::lock_guard lock(mutex_);
  if (!search_ || search_->phase != state.phase)
    search_ = Search{state, std::string(state.phase), state.done, Clock::now(), seconds_left};
  search_->state = state;
  search_->state.phase = search_->phase;
  search_->seconds_left = seconds_left;
}

void Progress::note_stop(const std::atomic<bool>* flag, const std::atomic<bool>* at_once) {
  const std::lock_guard lock(mutex_);
  stop_ = flag;
  stop_at_once_ = at_once;
}

double Progress::seconds() const {
  return std::chrono::duration<double>(Clock::now() - begin_).count();
}

void Progress::clear_line() {
  if (line_drawn_)
    say("\r\x1b[K");
  line_drawn_ = false;
}

std::string Progress::search_line() const {
  const SearchProgress& state = search_->state;
  const std::chrono::duration<double> in_phase = Clock::now() - search_->begin;
  const auto done = static_cast<double>(state.done);
  const double rate = (done - static_cast<double>(search_->first_done)) / in_phase.count();
  double left = search_->seconds_left;
  std::string line = fmt::format("[{:5.1f} s] {}", seconds(), search_->phase);
  if (state.total > 0) {
    constexpr int kBar = 20;
    const auto total = static_cast<double>(state.total);
    const int filled = static_cast<int>(kBar * std::clamp(done / total, 0.0, 1.0));
    if (terminal_)
      line += fmt::format(" [{:<{}}]", std::string(static_cast<std::size_t>(filled), '#'), kBar);
    line += fmt::format(" {}/{}", state.done, state.total);
    if (rate > 0)
      left = std::min(left, std::max(0.0, total - done) / rate);
  } else if (state.done > 0) {
    line += fmt::format(" {}", state.done);
  }
  if (rate > 0)
    line += fmt::format(", {:.3g}/s", rate);
  if (std::isfinite(state.best))
    line += fmt::format(", best {:.6g}", state.best);
  if (std::isfinite(state.bound))
    line += fmt::format(", bound {:.6g}", state.bound);
  const Certificate found{state.best, state.bound, false};
  if (std::isfinite(state.best) && std::isfinite(state.bound) && std::isfinite(found.gap()))
    line += fmt::format(", gap {:.1f} %", 100 * found.gap());
  if (std::isfinite(left))
    line += fmt::format(", {:.0f} s left", left);
  return line;
}

void Progress::watch(const std::stop_token& stop) {
  constexpr std::chrono::seconds kPatience{2};
  constexpr std::chrono::milliseconds kFrame{200};
  std::unique_lock lock(mutex_);
  changed_.wait_until(lock, stop, begin_ + kPatience, [] { return false; });
  std::string shown;
  double next_line = 0; // time for a search's next line, if lines cannot be overwritten
  while (!stop.stop_requested()) {
    if (search_ && stop_ != nullptr && stop_->load() && !stop_at_once_->load()) {
      stop_ = nullptr;
      clear_line();
      say("interrupted: the search ends with its best result once it has the plan of monet "
          "schedule; a second signal ends it at once\n");
    }
    if (search_ && terminal_) {
      say(fmt::format("\r{}\x1b[K", search_line()));
      line_drawn_ = true;
    } else if (search_ && seconds() >= next_line) {
      say(search_line() + "\n");
      next_line = seconds() + std::max(5.0, seconds() / 10);
    } else if (terminal_ && !search_ && stage_ != shown) {
      say(fmt::format("[{:5.1f} s] {}\n", seconds(), stage_));
    }
    shown = stage_;
    changed_.wait_for(lock, stop, kFrame, [&] { return stage_ != shown; });
  }
}

} // namespace monet::cli

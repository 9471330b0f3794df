#include "console.hpp"

#include "monet/base/errors.hpp"
#include "monet/base/files.hpp"
#include "monet/report/text.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include <cstdio>

namespace monet::cli {

void print_result(std::string_view text) {
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size() || std::fflush(stdout) != 0) {
    throw InputError({"standard output"}, "cannot be written");
  }
}

void print_message(std::string_view prefix, std::string_view text) {
  const std::string clean = printable(text, true);
  std::string_view rest = clean;
  while (!rest.empty()) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    fmt::print(stderr, "{}{}\n", prefix, line);
    rest.remove_prefix(std::min(rest.size(), line.size() + 1));
  }
}

void write_json(const std::string& path, const nlohmann::ordered_json& json) {
  const std::string text = json_text(json) + "\n";
  if (path == "-") {
    print_result(text);
  } else {
    write_file_atomically(path, text);
  }
}

Progress::Progress() : begin_(std::chrono::steady_clock::now()) {
  if (::isatty(STDERR_FILENO) == 0)
    return;
  watcher_ = std::jthread([this](const std::stop_token& stop) { watch(stop); });
}

Progress::~Progress() = default;

void Progress::stage(std::string_view name) {
  const std::lock_guard lock(mutex_);
  stage_ = name;
  changed_.notify_all();
}

void Progress::watch(const std::stop_token& stop) {
  constexpr std::chrono::seconds kPatience{2};
  std::unique_lock lock(mutex_);
  changed_.wait_until(lock, stop, begin_ + kPatience, [] { return false; });
  std::string shown;
  while (!stop.stop_requested()) {
    if (stage_ != shown) {
      const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - begin_;
      fmt::print(stderr, "[{:5.1f} s] {}\n", elapsed.count(), stage_);
      shown = stage_;
    }
    changed_.wait(lock, stop, [&] { return stage_ != shown; });
  }
}

} // namespace monet::cli

// Runs the built tool and catches what it says.
#pragma once

#include <nlohmann/json.hpp>

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace monet::test {

struct Ran {
  int code = 0;
  std::string out;
  std::string err;
};

/// Arguments are passed as they are, without a shell's interpretation; runs in `folder`.
Ran run_monet(const std::vector<std::string>& arguments, const std::filesystem::path& folder = ".");

/// The same, with Ctrl-C after so many seconds.
Ran run_interrupted(const std::vector<std::string>& arguments, double seconds);

/// The same, and again with twice the time while the signal comes too early to leave a result, as
/// it may on a busy machine: before the tool listens, or while its inputs are being prepared.
/// `before` runs before each further try.
Ran run_interrupted_at_work(
    const std::vector<std::string>& arguments, double seconds,
    const std::function<void()>& before = [] {});

/// A folder of its own for the running test, empty at first, removed at the end.
class Scratch {
public:
  Scratch();
  ~Scratch();
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  std::filesystem::path path() const { return path_; }
  /// Path of a new file with this text.
  std::string file(const std::string& name, const std::string& text) const;
  std::string operator/(const std::string& name) const { return (path_ / name).string(); }

private:
  std::filesystem::path path_;
};

/// A file of the repository.
std::string repository(const std::string& path);
nlohmann::json parse_file(const std::string& path);

/// Compares with tests/golden/<name>, or rewrites it after --update-golden.
void expect_golden(const std::string& name, const std::string& text);
void update_golden(bool update);

} // namespace monet::test

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

/// Whether `monet --version` lists a component of the build: "reference", "mpi".
bool has_component(const std::string& name);

/// The same with this signal, once: after the tool listens to it, where it can be listened to, and
/// has worked for so many seconds of its own CPU time, of which a busy machine takes nothing.
Ran run_signalled(const std::vector<std::string>& arguments, int signal, double cpu_seconds);

/// With Ctrl-C; again with twice the time while it comes too early to leave a result: while inputs
/// are being prepared. `before` runs before each further try.
Ran run_interrupted_at_work(
    const std::vector<std::string>& arguments, double cpu_seconds,
    const std::function<void()>& before = [] {});

/// With a time limit; again with twice the time while it is over before there is any plan, as it
/// may be on a busy machine.
Ran run_limited(std::vector<std::string> arguments, double seconds);

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

/// The shipped space of edge chips with a small network, as a file of the folder.
std::string small_study(const Scratch& folder);

/// Path of a network of tests/fixtures/training/, as a file that lives as long as this process.
std::string small_network(const std::string& name);

/// A file of the repository.
std::string repository(const std::string& path);
nlohmann::json parse_file(const std::string& path);

/// Compares with tests/golden/<name>, or rewrites it after --update-golden.
void expect_golden(const std::string& name, const std::string& text);
void update_golden(bool update);

} // namespace monet::test

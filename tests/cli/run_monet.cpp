#include "cli/run_monet.hpp"

#include "base/archive.hpp"

#include "monet/base/files.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdio>
#include <ctime>
#include <fstream>

namespace monet::test {

namespace fs = std::filesystem;

namespace {

std::string quoted(const std::string& argument) {
  std::string text = "'";
  for (const char c : argument)
    text += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return text + "'";
}

int exit_code(int status) {
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

bool has_ended(pid_t child) {
  siginfo_t info{};
  return ::waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
         info.si_pid == child;
}

/// Whether a process catches a signal, or holds it back to wait for it.
bool listens(pid_t child, int signal) {
  std::ifstream status("/proc/" + std::to_string(child) + "/status");
  for (std::string line; std::getline(status, line);) {
    if ((line.rfind("SigCgt:", 0) == 0 || line.rfind("SigBlk:", 0) == 0) &&
        ((std::stoull(line.substr(7), nullptr, 16) >> (signal - 1)) & 1) != 0)
      return true;
  }
  return false;
}

/// CPU time of all threads of a process, in seconds.
double worked(pid_t child) {
  clockid_t clock{};
  timespec time{};
  if (::clock_getcpuclockid(child, &clock) != 0 || ::clock_gettime(clock, &time) != 0)
    return 0;
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

void execute(const std::vector<std::string>& arguments, const std::string& out,
             const std::string& err) {
  std::vector<char*> words;
  std::vector<std::string> all{MONET_BINARY};
  all.insert(all.end(), arguments.begin(), arguments.end());
  for (std::string& word : all)
    words.push_back(word.data());
  words.push_back(nullptr);
  ::dup2(::creat(out.c_str(), 0600), STDOUT_FILENO);
  ::dup2(::creat(err.c_str(), 0600), STDERR_FILENO);
  ::execv(MONET_BINARY, words.data());
  ::_exit(127);
}

bool& updating() {
  static bool update = false;
  return update;
}

} // namespace

Ran run_monet(const std::vector<std::string>& arguments, const fs::path& folder) {
  const Scratch scratch;
  std::string command = "cd " + quoted(folder.string()) + " && " + quoted(MONET_BINARY);
  for (const std::string& argument : arguments)
    command += " " + quoted(argument);
  command += " 2>" + quoted(scratch / "err");
  std::FILE* pipe = ::popen(command.c_str(), "r");
  Ran ran;
  std::array<char, 4096> block{};
  for (std::size_t n = 0; (n = std::fread(block.data(), 1, block.size(), pipe)) > 0;) {
    ran.out.append(block.data(), n);
  }
  ran.code = exit_code(::pclose(pipe));
  ran.err = read_file(scratch / "err");
  return ran;
}

bool has_component(const std::string& name) {
  static const std::string said = run_monet({"--version"}).out;
  return said.find(name, said.find("components:")) != std::string::npos;
}

Ran run_signalled(const std::vector<std::string>& arguments, int signal, double cpu_seconds) {
  const Scratch scratch;
  const pid_t child = ::fork();
  if (child == 0)
    execute(arguments, scratch / "out", scratch / "err");
  const bool can_listen = signal != SIGKILL;
  while (!has_ended(child) &&
         ((can_listen && !listens(child, signal)) || worked(child) < cpu_seconds))
    ::usleep(500);
  ::kill(child, signal);
  int status = 0;
  ::waitpid(child, &status, 0);
  return {exit_code(status), read_file(scratch / "out"), read_file(scratch / "err")};
}

namespace {

constexpr double kLongest = 60; // seconds; then it is no matter of the machine

}

Ran run_interrupted_at_work(const std::vector<std::string>& arguments, double cpu_seconds,
                            const std::function<void()>& before) {
  const auto too_early = [](const Ran& ran) { // its last line, after those that tell progress
    const std::size_t at = ran.err.rfind("stopped");
    return ran.code == 130 && ran.out.empty() && at != std::string::npos &&
           (at == 0 || ran.err[at - 1] == '\n') &&
           (ran.err.compare(at, 10, "stopped in") == 0 ||
            ran.err.compare(at, 14, "stopped before") == 0);
  };
  Ran ran = run_signalled(arguments, SIGINT, cpu_seconds);
  while (too_early(ran) && cpu_seconds < kLongest) {
    before();
    ran = run_signalled(arguments, SIGINT, cpu_seconds *= 2);
  }
  return ran;
}

Ran run_limited(std::vector<std::string> arguments, double seconds) {
  arguments.insert(arguments.end(), {"--time-limit", std::to_string(seconds)});
  Ran ran = run_monet(arguments);
  while (ran.code == 4 && ran.err.find("no plan yet") != std::string::npos && seconds < kLongest) {
    arguments.back() = std::to_string(seconds *= 2);
    ran = run_monet(arguments);
  }
  return ran;
}

Scratch::Scratch() {
  std::string name = (fs::temp_directory_path() / "monet_cli_XXXXXX").string();
  path_ = ::mkdtemp(name.data());
}

Scratch::~Scratch() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

std::string Scratch::file(const std::string& name, const std::string& text) const {
  write_file_atomically(*this / name, text);
  return *this / name;
}

std::string small_study(const Scratch& folder) {
  std::string text = read_file(repository("data/spaces/edge_study.yaml"));
  const std::string shipped = "../workload/resnet18_cifar.onnx, batch: 4";
  const std::size_t at = text.find(shipped);
  EXPECT_NE(at, std::string::npos);
  text.replace(at, shipped.size(), repository("data/workload/gpt2_nano.onnx") + ", batch: 1");
  return folder.file("space.yaml", text);
}

std::string small_network(const std::string& name) {
  static const Scratch folder;
  return folder.file(name + ".onnx", training_network(name));
}

std::string repository(const std::string& path) {
  return MONET_SOURCE_DIR "/" + path;
}

nlohmann::json parse_file(const std::string& path) {
  return nlohmann::json::parse(read_file(path));
}

void expect_golden(const std::string& name, const std::string& text) {
  const std::string path = repository("tests/golden/" + name);
  if (updating())
    write_file_atomically(path, text);
  EXPECT_EQ(text, read_file(path)) << "if this is right: cli_test --update-golden";
}

void update_golden(bool update) {
  updating() = update;
}

} // namespace monet::test

#include "cli/run_monet.hpp"

#include "monet/base/files.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <memory>

namespace monet::test {

namespace fs = std::filesystem;

namespace {

std::string quoted(const std::string& argument) {
  std::string text = "'";
  for (const char c : argument)
    text += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return text + "'";
}

Ran run_behind(const std::string& prefix, const std::vector<std::string>& arguments,
               const fs::path& folder);

bool& updating() {
  static bool update = false;
  return update;
}

} // namespace

Ran run_monet(const std::vector<std::string>& arguments, const fs::path& folder) {
  return run_behind("", arguments, folder);
}

Ran run_interrupted(const std::vector<std::string>& arguments, double seconds) {
  return run_behind("timeout --preserve-status -s INT " + std::to_string(seconds) + " ", arguments,
                    ".");
}

Ran run_interrupted_at_work(const std::vector<std::string>& arguments, double seconds,
                            const std::function<void()>& before) {
  const auto too_early = [](const Ran& ran) {
    return ran.code == 130 && ran.out.empty() &&
           (ran.err.empty() || ran.err.find("stopped before stage") != std::string::npos);
  };
  Ran ran = run_interrupted(arguments, seconds);
  while (too_early(ran)) {
    before();
    ran = run_interrupted(arguments, seconds *= 2);
  }
  return ran;
}

namespace {

Ran run_behind(const std::string& prefix, const std::vector<std::string>& arguments,
               const fs::path& folder) {
  const Scratch scratch;
  std::string command = "cd " + quoted(folder.string()) + " && " + prefix + quoted(MONET_BINARY);
  for (const std::string& argument : arguments)
    command += " " + quoted(argument);
  command += " 2>" + quoted(scratch / "err");
  std::FILE* pipe = ::popen(command.c_str(), "r");
  Ran ran;
  std::array<char, 4096> block{};
  for (std::size_t n = 0; (n = std::fread(block.data(), 1, block.size(), pipe)) > 0;) {
    ran.out.append(block.data(), n);
  }
  const int status = ::pclose(pipe);
  ran.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  ran.err = read_file(scratch / "err");
  return ran;
}

} // namespace

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

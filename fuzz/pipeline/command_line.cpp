#include "pipeline/command_line.hpp"

#include "pipeline/stopping.hpp"

#include "monet/base/errors.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>
#include <sstream>

namespace monet::fuzz {

namespace {

std::unique_ptr<cli::Command> program() {
  auto monet = std::make_unique<cli::Command>();
  monet->name = "monet";
  cli::add_run_command(*monet);
  cli::add_graph_command(*monet);
  cli::add_core_command(*monet);
  cli::add_backward_command(*monet);
  cli::add_schedule_command(*monet);
  cli::add_optimise_command(*monet);
  cli::add_explore_command(*monet);
  cli::add_report_command(*monet);
  return monet;
}

std::vector<std::string> words_of(const std::string& text, const std::string& input) {
  std::vector<std::string> words;
  std::istringstream stream(text);
  for (std::string word; stream >> word;) {
    if (word == "@")
      word = input;
    else if (word.front() == '$')
      word = MONET_SOURCE_DIR + word.substr(1);
    words.push_back(word);
  }
  return words;
}

} // namespace

InputFile::InputFile() : file_(memfd_create("input", 0)) {
  internal_check(file_ >= 0, "no file in memory");
  path_ = "/proc/self/fd/" + std::to_string(file_);
}

InputFile::~InputFile() {
  close(file_);
}

void InputFile::write(std::string_view contents) {
  const bool written =
      ftruncate(file_, 0) == 0 &&
      pwrite(file_, contents.data(), contents.size(), 0) == static_cast<ssize_t>(contents.size());
  internal_check(written, "the input cannot be written");
}

CommandLine::CommandLine(const std::string& words, const std::string& input) : program_(program()) {
  try {
    chosen_ = &cli::parse_arguments(*program_, words_of(words, input));
  } catch (const cli::UsageError& error) {
    throw InternalError("a target's command line is wrong: " + words + ": " + error.what());
  }
}

void CommandLine::run() const {
  const StopAfter stop;
  cli::Session session;
  session.interrupted = stop.flag();
  session.context.stop.flag = stop.flag();
  const StopScope scope(&session.context.stop);
  try {
    internal_check(cli::run_command(*chosen_, session) != cli::kExitInternal, "exit code 70");
  } catch (const cli::UsageError&) {
    // Of options that this network does not allow.
  }
}

} // namespace monet::fuzz

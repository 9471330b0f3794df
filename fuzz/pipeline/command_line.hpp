// The command line, as `monet` runs it, on one input after another.
#pragma once

#include "commands/commands.hpp"

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace monet::fuzz {

/// A file in memory. Its path is the same for all inputs, so options are parsed once.
class InputFile {
public:
  InputFile();
  ~InputFile();
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;

  void write(std::string_view contents);
  const std::string& path() const { return path_; }

private:
  int file_ = -1;
  std::string path_;
};

/// One command with its options, parsed. "@" stands for the input, "$" for this repository.
class CommandLine {
public:
  CommandLine(const std::string& words, const std::string& input);
  /// With Ctrl-C after some seconds. Throws what `monet` would tell; usage errors are answers.
  void run() const;

private:
  std::unique_ptr<cli::Command> program_;
  const cli::Command* chosen_ = nullptr; ///< of the program
};

} // namespace monet::fuzz

// Inputs that a reader must refuse: the cases of a file in tests/input_errors/.
#pragma once

#include "monet/base/errors.hpp"
#include "monet/base/files.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <ostream>
#include <sstream>
#include <string>
#include <vector>

namespace monet::test {

struct InputCase {
  std::string name;
  std::map<std::string, std::string> files; // by name; the input itself is "<case>.yaml"
  std::string error;                        // first line of the message
  const std::string& text() const { return files.at(name + ".yaml"); }
};

inline std::string input_case_name(const testing::TestParamInfo<InputCase>& info) {
  return info.param.name;
}

inline void PrintTo(const InputCase& one, std::ostream* out) {
  *out << one.name;
}

/// Cases of "tests/input_errors/<kind>.txt", sorted by name. "==== NAME" begins a case, "---- file
/// NAME" a further file (of all cases, where it stands before the first) and "---- error" the
/// expected message. Lines before the first of these are comments.
inline std::vector<InputCase> input_cases(const std::string& kind) {
  std::istringstream lines(read_file(MONET_SOURCE_DIR "/tests/input_errors/" + kind + ".txt"));
  std::vector<InputCase> cases;
  std::map<std::string, std::string> shared;
  std::string comment;
  std::string* text = &comment;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("==== ")) {
      cases.push_back({line.substr(5), shared, ""});
      text = &cases.back().files[cases.back().name + ".yaml"];
    } else if (line.starts_with("---- file ")) {
      text = &(cases.empty() ? shared : cases.back().files)[line.substr(10)];
    } else if (line == "---- error") {
      text = &cases.back().error;
    } else {
      *text += line + "\n";
    }
  }
  std::ranges::sort(cases, {}, &InputCase::name);
  return cases;
}

/// The first line of the message when `read` is given the case's file, without the folder's name;
/// "no error" if it is accepted.
template <class Read>
std::string error_of(const InputCase& one, Read read) {
  const std::string folder = "/input/";
  std::map<std::string, std::string> given;
  for (const auto& [name, text] : one.files)
    given.emplace(folder + name, text);
  const GivenFiles files(given);
  std::string message = "no error";
  try {
    read(folder + one.name + ".yaml");
  } catch (const InputError& error) {
    message = error.what();
  }
  message = message.substr(0, message.find('\n')) + "\n";
  for (auto at = message.find(folder); at != std::string::npos; at = message.find(folder))
    message.erase(at, folder.size());
  return message;
}

} // namespace monet::test

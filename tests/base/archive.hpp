// Fixtures that are members of a file: uncompressed tar archives, and texts behind lines "====
// NAME".
#pragma once

#include "monet/base/errors.hpp"
#include "monet/base/files.hpp"

#include <map>
#include <sstream>
#include <string>

namespace monet::test {

/// Bytes of a member of an archive in tests/fixtures/. InternalError if there is none.
inline const std::string& archived(const std::string& archive, const std::string& member) {
  static std::map<std::string, std::map<std::string, std::string>> read;
  const auto [found, is_new] = read.try_emplace(archive);
  if (is_new) {
    const std::string bytes = read_file(MONET_SOURCE_DIR "/tests/fixtures/" + archive);
    constexpr std::size_t kBlock = 512; // of a header, and what a member's size is rounded up to
    for (std::size_t at = 0; at + kBlock <= bytes.size() && bytes[at] != '\0';) {
      const std::size_t size = std::stoul(bytes.substr(at + 124, 11), nullptr, 8);
      found->second.emplace(bytes.substr(at, 100).c_str(), bytes.substr(at + kBlock, size));
      at += kBlock + (size + kBlock - 1) / kBlock * kBlock;
    }
  }
  const auto one = found->second.find(member);
  if (one == found->second.end())
    throw InternalError("no '" + member + "' in " + archive);
  return one->second;
}

/// The ONNX file of a network that tools/make_training_fixtures.py wrote.
inline const std::string& training_network(const std::string& name) {
  return archived("training/networks.tar", name + ".onnx");
}

/// Texts of a file in tests/fixtures/ by name, behind `folder`.
inline std::map<std::string, std::string> texts_of(const std::string& file,
                                                   const std::string& folder) {
  std::istringstream lines(read_file(MONET_SOURCE_DIR "/tests/fixtures/" + file));
  std::map<std::string, std::string> texts;
  std::string* text = nullptr;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("==== "))
      text = &texts[folder + line.substr(5)];
    else
      *text += line + "\n";
  }
  return texts;
}

} // namespace monet::test

// The networks of tests/fixtures/training/networks.tar, which tools/make_training_fixtures.py
// writes.
#pragma once

#include "monet/base/errors.hpp"
#include "monet/base/files.hpp"

#include <cstdint>
#include <string>

namespace monet::test {

/// Bytes of the ONNX file of the network with this name. InternalError if there is none.
inline std::string training_network(const std::string& name) {
  static const std::string archive =
      read_file(MONET_SOURCE_DIR "/tests/fixtures/training/networks.tar");
  constexpr std::size_t kBlock = 512; // of a header, and what a member's size is rounded up to
  for (std::size_t at = 0; at + kBlock <= archive.size() && archive[at] != '\0';) {
    const std::size_t size = std::stoul(archive.substr(at + 124, 11), nullptr, 8);
    if (archive.substr(at, 100).c_str() == name + ".onnx")
      return archive.substr(at + kBlock, size);
    at += kBlock + (size + kBlock - 1) / kBlock * kBlock;
  }
  throw InternalError("no network '" + name + "' in networks.tar");
}

} // namespace monet::test

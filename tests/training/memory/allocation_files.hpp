// The instances of tests/fixtures/allocation.
#pragma once

#include "monet/training/static_allocator.hpp"

#include <fstream>
#include <stdexcept>
#include <string>
#include <vector>

namespace monet {

inline constexpr std::int64_t kInstanceCapacity = 1'048'576;

inline std::vector<BufferRequest> read_instance(char name) {
  const std::string path =
      std::string(MONET_SOURCE_DIR) + "/tests/fixtures/allocation/" + name + ".csv";
  std::ifstream file(path);
  if (!file)
    throw std::runtime_error("cannot read " + path);
  std::string line;
  std::getline(file, line); // header
  std::vector<BufferRequest> requests;
  BufferRequest request;
  char comma = 0;
  while (file >> request.start >> comma >> request.end >> comma >> request.size)
    requests.push_back(request);
  return requests;
}

} // namespace monet

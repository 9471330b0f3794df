// The eleven hard instances of MiniMalloc (Moffitt, ASPLOS 2023): lifetimes [start, end) and sizes
// in bytes, to be placed within 1,048,576 bytes. In eight of them (all but C, D and J) as much is
// alive at one time, so that nothing may be wasted.
#pragma once

#include "monet/base/files.hpp"
#include "monet/training_graph/liveness.hpp"

#include <sstream>
#include <string>
#include <vector>

namespace monet {

inline constexpr std::int64_t kInstanceCapacity = 1'048'576;

inline std::vector<BufferRequest> read_instance(char name) {
  std::istringstream file(read_file(MONET_SOURCE_DIR "/tests/fixtures/allocation.csv"));
  std::string line;
  std::getline(file, line); // header
  std::vector<BufferRequest> requests;
  BufferRequest request;
  char instance = 0;
  char comma = 0;
  while (file >> instance >> comma >> request.start >> comma >> request.end >> comma >>
         request.size) {
    if (instance == name)
      requests.push_back(request);
  }
  return requests;
}

} // namespace monet

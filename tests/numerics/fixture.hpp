// Reference files of formats and units.
#pragma once

#include "monet/base/npy.hpp"

#include <string>

namespace monet {

inline NpyArray numerics_fixture(const std::string& name) {
  return read_npy(std::string(MONET_SOURCE_DIR) + "/tests/fixtures/numerics/" + name + ".npy");
}

} // namespace monet

// Reference files of formats and units.
#pragma once

#include "base/archive.hpp"
#include "base/shared/npy.hpp"

#include <string>

namespace monet {

inline NpyArray numerics_fixture(const std::string& name) {
  return parse_npy(test::archived("numerics.tar", name + ".npy"), name);
}

} // namespace monet

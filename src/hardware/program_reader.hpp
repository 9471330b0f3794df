// `issue:` and `kernels:` of a core file.
#pragma once

#include "monet/base/yaml.hpp"
#include "monet/hardware/core.hpp"

namespace monet {

/// Into Core::program, of a core whose array and kind are read.
void read_program(YamlMap& map, ProblemList& problems, Core& core);

} // namespace monet

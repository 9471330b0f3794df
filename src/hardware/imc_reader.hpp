// The keys of arrays that compute in memory, in `operational_array:` of a core file.
#pragma once

#include "monet/base/yaml.hpp"
#include "monet/hardware/core.hpp"

namespace monet {

/// The keys that only such arrays have, into core.imc.
void read_imc_keys(YamlMap& map, ProblemList& problems, Core& core);
/// Which dimensions of the array are columns and rows, once `core.array` is known.
void place_imc_array(const YamlNode& names, const YamlNode& sizes, ProblemList& problems,
                     Core& core);
/// Which memory holds the weights, once the memories are known.
void find_imc_cells(const YamlNode& memories, ProblemList& problems, Core& core);

} // namespace monet

// One entry of a core file's `memories` -> Memory, in either schema.
#pragma once

#include "monet/base/yaml.hpp"
#include "monet/hardware/core.hpp"

#include <vector>

namespace monet {

Memory read_memory(const YamlNode::Entry& entry, const std::vector<ArrayDim>& array,
                   ProblemList& problems);

/// "I1", "I2" or "O"; nullopt and a located problem otherwise.
std::optional<MemoryOperand> parse_memory_operand(std::string_view name, const SourceLoc& where,
                                                  ProblemList& problems);

/// An energy or an area: not negative and not absurd; 0 when absent or wrong.
double read_figure(YamlMap& map, const char* key, bool required, ProblemList& problems);

} // namespace monet

// One entry of a core file's `memories` -> Memory, in either schema.
#pragma once

#include "monet/base/yaml.hpp"
#include "monet/hardware/core.hpp"

#include <vector>

namespace monet {

/// `offchip`: a memory of the off-chip core, which the model of DRAM prices.
Memory read_memory(const YamlNode::Entry& entry, const std::vector<ArrayDim>& array, bool offchip,
                   ProblemList& problems);

/// "I1", "I2" or "O"; nullopt and a located problem otherwise.
std::optional<MemoryOperand> parse_memory_operand(std::string_view name, const SourceLoc& where,
                                                  ProblemList& problems);

/// An energy or an area: not negative and not absurd; 0 when absent or wrong.
double read_figure(YamlMap& map, const char* key, bool required, ProblemList& problems);

/// `technology_nm` within the range of our models, or 0.
double read_technology(YamlMap& map, ProblemList& problems);

} // namespace monet

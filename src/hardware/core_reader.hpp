// Readers of the parts of a core file.
#pragma once

#include "monet/base/yaml.hpp"
#include "monet/hardware/core.hpp"

#include <optional>
#include <vector>

namespace monet {

/// Parses the root of a core file. Problems are collected; an off-chip core may have an empty
/// array.
Core parse_core_node(const YamlNode& root, ProblemList& problems, bool offchip);

/// {D1: ["K, 32"], D2: ["C, 32"]}, one list per array dimension; absent = empty.
std::vector<std::vector<Unrolling>>
parse_dataflow(const YamlNode& node, const std::vector<ArrayDim>& array, ProblemList& problems);

/// Reads `operational_array:` into array, mac_energy_pj, array_area_mm2, the keys of the arithmetic
/// model, mac and modes.
void read_array(const YamlNode& node, ProblemList& problems, bool offchip, Core& core);

/// Reads `issue:` and `kernels:` into Core::program. The core's array and kind must be set.
void read_program(YamlMap& map, ProblemList& problems, Core& core);

/// Reads the keys of arrays that compute in memory into core.imc.
void read_imc_keys(YamlMap& map, ProblemList& problems, Core& core);
/// Sets which dimensions of the array are columns and rows, once `core.array` is known.
void place_imc_array(const YamlNode& names, const YamlNode& sizes, ProblemList& problems,
                     Core& core);
/// Finds the memory that holds the weights, once the memories are known.
void find_imc_cells(const YamlNode& memories, ProblemList& problems, Core& core);

/// Reads one entry of `memories`, in either schema. `offchip`: the memory belongs to the off-chip
/// core and is priced by the DRAM model.
Memory read_memory(const YamlNode::Entry& entry, const std::vector<ArrayDim>& array, bool offchip,
                   ProblemList& problems);

/// "I1", "I2" or "O"; nullopt and a located problem otherwise.
std::optional<MemoryOperand> parse_memory_operand(std::string_view name, const SourceLoc& where,
                                                  ProblemList& problems);

/// An energy or an area: not negative and not absurd; 0 when absent or wrong.
double read_figure(YamlMap& map, const char* key, bool required, ProblemList& problems);

/// Reads `frequency_hz` in hertz; 0 if it is absent. An unusual frequency is a warning.
double read_frequency(YamlMap& map, ProblemList& problems);
/// `technology_nm` within the range of our models, or 0.
double read_technology(YamlMap& map, ProblemList& problems);

} // namespace monet

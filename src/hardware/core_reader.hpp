// Readers of the parts of a core file.
#pragma once

#include "monet/base/yaml.hpp"
#include "monet/hardware/core.hpp"

#include <optional>
#include <vector>

namespace monet {

/// A core file's root. Problems are collected; an off-chip core may have an array of size 0.
Core parse_core_node(const YamlNode& root, ProblemList& problems, bool offchip);

/// {D1: ["K, 32"], D2: ["C, 32"]}, one list per array dimension; absent = empty.
std::vector<std::vector<Unrolling>>
parse_dataflow(const YamlNode& node, const std::vector<ArrayDim>& array, ProblemList& problems);

/// `operational_array:` into array, mac_energy_pj, array_area_mm2, the keys of the arithmetic
/// model, mac and modes.
void read_array(const YamlNode& node, ProblemList& problems, bool offchip, Core& core);

/// `issue:` and `kernels:` into Core::program, of a core whose array and kind are read.
void read_program(YamlMap& map, ProblemList& problems, Core& core);

/// The keys that only arrays that compute in memory have, into core.imc.
void read_imc_keys(YamlMap& map, ProblemList& problems, Core& core);
/// Which dimensions of the array are columns and rows, once `core.array` is known.
void place_imc_array(const YamlNode& names, const YamlNode& sizes, ProblemList& problems,
                     Core& core);
/// Which memory holds the weights, once the memories are known.
void find_imc_cells(const YamlNode& memories, ProblemList& problems, Core& core);

/// One entry of `memories`, in either schema. `offchip`: of the off-chip core, which the model of
/// DRAM prices.
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

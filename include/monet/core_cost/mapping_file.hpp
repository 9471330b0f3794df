// Mapping files of ZigZag (spatial mapping, operand links) and of Stream (core allocation,
// tilings): one entry per node name, operator type or `default`.
// Example:
//   std::vector<std::int64_t> cores_of(std::string_view node) {
//     const MappingFile mapping = read_mapping("examples/stream/jia_mapping.yaml");
//     const MappingEntry* entry = mapping.find(node, "Conv");
//     return entry ? entry->core_allocation.value_or(std::vector<std::int64_t>{})
//                  : std::vector<std::int64_t>{};
//   }
#pragma once

#include "monet/base/yaml.hpp"
#include "monet/core_cost/core_cost.hpp"
#include "monet/hardware/chip.hpp"
#include "monet/workload/graph.hpp"

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace monet {

/// A tiling factor: "OY, 4", "OY, all" (every iteration) or "K, *" (chosen by the tool).
struct TilingFactor {
  enum class Amount { number, all, chosen };
  std::string dim;
  Amount amount = Amount::number;
  std::int64_t factor = 1;
};

/// One entry of a mapping file.
struct MappingEntry {
  std::string name; ///< node name, operator type, or "default"
  std::optional<std::vector<std::int64_t>> core_allocation;
  std::vector<TilingFactor> intra_core_tiling;
  std::vector<TilingFactor> inter_core_tiling;
  std::map<std::string, std::vector<Unrolling>> spatial_mapping; ///< unrollings by array dim name
  std::map<std::string, std::vector<std::string>> spatial_mapping_hint;
  std::map<std::string, MemoryOperand> memory_operand_links; ///< "W" -> I2
  std::vector<std::pair<std::string, std::optional<std::int64_t>>>
      temporal_ordering; ///< innermost first; nullopt = "*"
  /// Loop names of the layers that the entry applies to, outermost first; empty = the default
  /// names.
  std::vector<std::string> layer_dimension_names;
  /// Whether the entry only sets `core_allocation` and `inter_core_tiling` of the node of this
  /// name. Everything else is taken from the entry that would apply without this one.
  bool allocation_only = false;
  SourceLoc where;
};

struct MappingFile {
  std::string origin;
  std::vector<MappingEntry> entries;

  /// Entry for a node name, otherwise for its operator type, otherwise `default`, otherwise null.
  const MappingEntry* find(std::string_view node, std::string_view op_type) const;
  /// Entry with `allocation_only` for a node, or null.
  const MappingEntry* find_allocation(std::string_view node) const;
};

/// Layers, operator types and loops that entries can name.
struct MappingSubjects {
  struct LoopsOfLayer {
    std::string name;
    std::string op_type;
    std::vector<LoopDim> dims;
  };

  std::set<std::string, std::less<>> layers; ///< names of layers
  std::set<std::string, std::less<>> types;  ///< operator types other than the known ones
  LoopNames loops;
  std::vector<LoopsOfLayer> sizes;

  void add(const std::string& name, const std::string& op_type, const std::vector<LoopDim>& dims);
  void add(const Graph& graph);
};

/// Use of a mapping file. Layers on one core follow its unrollings, loop orders and operand links;
/// a step follows its cores and tilings.
enum class MappingUse { layers, step };

/// Adds a problem for each entry with an unknown layer name or operator type, and for each one that
/// names a loop that no layer has. Warns of entries that apply to no layer. For layers, warns of
/// unrollings wider than the loop of the layer that an entry names, or of all layers that it
/// applies to; for a step, warns once of keys without effect.
void check_subjects(const MappingFile& mapping, const MappingSubjects& subjects, MappingUse use,
                    ProblemList& problems);

/// Reads a mapping file. Throws one InputError with every problem found.
MappingFile read_mapping(const std::string& path);
/// Parses the text of a mapping file; `origin` names it in messages. Errors as read_mapping().
MappingFile parse_mapping(std::string_view text, const std::string& origin);

/// Text of a mapping file; parse_mapping() reads it as the same entries.
std::string mapping_text(const MappingFile& mapping);

} // namespace monet

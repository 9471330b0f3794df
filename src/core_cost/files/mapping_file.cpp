// Reads mapping files in the formats of ZigZag and Stream; the core cost and the tiler apply their
// entries.
#include "monet/core_cost/mapping_file.hpp"

#include "base/shared/file_kind.hpp"
#include "base/shared/text.hpp"

#include "monet/base/files.hpp"

#include <fmt/core.h>

#include <algorithm>

namespace monet {

namespace {

constexpr std::size_t kMaxMappingBytes = std::size_t{1} << 24;

/// Two parts of "K, 32" or [K, 32]; the second keeps its location if it has one.
struct Pair {
  std::string name;
  YamlNode value;
};

std::optional<Pair> read_pair(const YamlNode& node, std::string_view example,
                              ProblemList& problems) {
  Pair pair;
  if (node.kind == YamlNode::Kind::sequence && node.items.size() == 2 &&
      node.items[0].kind == YamlNode::Kind::scalar &&
      node.items[1].kind == YamlNode::Kind::scalar) {
    pair = {node.items[0].scalar, node.items[1]};
  } else if (node.kind == YamlNode::Kind::scalar) {
    if (const std::size_t comma = node.scalar.find(','); comma != std::string::npos) {
      pair.name = trimmed(std::string_view(node.scalar).substr(0, comma));
      pair.value = node;
      pair.value.quoted = false; // quotes around "K, 32" do not apply to the 32
      pair.value.scalar = trimmed(std::string_view(node.scalar).substr(comma + 1));
    }
  }
  if (!pair.name.empty() && !pair.value.scalar.empty())
    return pair;
  problems.add(node.where, fmt::format("expected a pair like '{}'", example));
  return std::nullopt;
}

std::optional<std::int64_t> read_factor(const YamlNode& node, ProblemList& problems) {
  const std::optional<std::int64_t> factor = as_integer(node, problems);
  if (!factor || *factor >= 1)
    return factor;
  problems.add(node.where, fmt::format("factor {} must be at least 1", *factor));
  return std::nullopt;
}

/// Items of a list; an absent or empty value counts as an empty list.
const std::vector<YamlNode>& items_of(const YamlNode* node, std::string_view key,
                                      ProblemList& problems) {
  static const std::vector<YamlNode> kNothing;
  if (node == nullptr || node->kind == YamlNode::Kind::null)
    return kNothing;
  if (node->kind != YamlNode::Kind::sequence) {
    problems.add(node->where, fmt::format("'{}' must be a list", key));
    return kNothing;
  }
  return node->items;
}

/// Entries of a map; an absent or empty value counts as an empty map.
const std::vector<YamlNode::Entry>& entries_of(const YamlNode* node, ProblemList& problems) {
  static const std::vector<YamlNode::Entry> kNothing;
  if (node == nullptr || node->kind == YamlNode::Kind::null)
    return kNothing;
  const YamlMap map(*node, problems); // reports non-maps and duplicate keys
  return map.node().entries;
}

std::vector<TilingFactor> read_tiling(YamlMap& map, std::string_view key, ProblemList& problems) {
  std::vector<TilingFactor> tiling;
  for (const YamlNode& item : items_of(map.find(key), key, problems)) {
    const std::optional<Pair> pair = read_pair(item, "OY, 4", problems);
    if (!pair)
      continue;
    TilingFactor factor;
    factor.dim = pair->name;
    if (pair->value.scalar == "all") {
      factor.amount = TilingFactor::Amount::all;
    } else if (pair->value.scalar == "*") {
      factor.amount = TilingFactor::Amount::chosen;
    } else if (const auto number = read_factor(pair->value, problems)) {
      factor.factor = *number;
    } else {
      continue;
    }
    tiling.push_back(std::move(factor));
  }
  return tiling;
}

std::optional<std::vector<std::int64_t>> read_allocation(YamlMap& map, ProblemList& problems) {
  const YamlNode* node = map.find("core_allocation");
  map.ignore("core_allocation_is_fixed");
  if (node == nullptr || node->kind == YamlNode::Kind::null)
    return std::nullopt;
  std::vector<std::int64_t> cores;
  const bool single = node->kind == YamlNode::Kind::scalar;
  const std::vector<YamlNode> alone =
      single ? std::vector<YamlNode>{*node} : std::vector<YamlNode>{};
  for (const YamlNode& item : single ? alone : items_of(node, "core_allocation", problems)) {
    const std::optional<std::int64_t> core = as_integer(item, problems);
    if (!core)
      continue;
    if (*core < 0)
      problems.add(item.where, fmt::format("{} is not a core id", *core));
    cores.push_back(*core);
  }
  return cores;
}

void read_spatial(YamlMap& map, MappingEntry& entry, ProblemList& problems) {
  for (const YamlNode::Entry& dim : entries_of(map.find("spatial_mapping"), problems)) {
    std::vector<Unrolling>& unrolled = entry.spatial_mapping[dim.key];
    for (const YamlNode& item : items_of(&dim.value, dim.key, problems)) {
      const std::optional<Pair> pair = read_pair(item, "K, 32", problems);
      if (const auto factor = pair ? read_factor(pair->value, problems) : std::nullopt)
        unrolled.push_back({pair->name, *factor});
    }
  }
  for (const YamlNode::Entry& dim : entries_of(map.find("spatial_mapping_hint"), problems)) {
    if (dim.value.kind == YamlNode::Kind::null)
      continue;
    entry.spatial_mapping_hint[dim.key] = as_strings(dim.value, problems, true);
  }
}

void read_links(YamlMap& map, MappingEntry& entry, ProblemList& problems) {
  for (const YamlNode::Entry& link : entries_of(map.find("memory_operand_links"), problems)) {
    if (const std::string& name = link.value.scalar; name == "I1" || name == "I2" || name == "O") {
      entry.memory_operand_links[link.key] = name == "I1"   ? MemoryOperand::I1
                                             : name == "I2" ? MemoryOperand::I2
                                                            : MemoryOperand::O;
    } else {
      problems.add(link.value.where,
                   fmt::format("'{}' must be linked to a memory operand: I1, I2 or O", link.key));
    }
  }
}

void read_ordering(YamlMap& map, MappingEntry& entry, ProblemList& problems) {
  constexpr std::string_view kKey = "temporal_ordering";
  for (const YamlNode& item : items_of(map.find(kKey), kKey, problems)) {
    const std::optional<Pair> pair = read_pair(item, "OX, 112", problems);
    if (!pair)
      continue;
    if (pair->value.scalar == "*") {
      entry.temporal_ordering.emplace_back(pair->name, std::nullopt);
    } else if (const auto size = read_factor(pair->value, problems)) {
      entry.temporal_ordering.emplace_back(pair->name, *size);
    }
  }
}

MappingEntry read_entry(const YamlNode& node, ProblemList& problems) {
  MappingEntry entry;
  entry.where = node.where;
  YamlMap map(node, problems);
  entry.name = map.require_string("name");
  entry.core_allocation = read_allocation(map, problems);
  entry.intra_core_tiling = read_tiling(map, "intra_core_tiling", problems);
  entry.inter_core_tiling = read_tiling(map, "inter_core_tiling", problems);
  read_spatial(map, entry, problems);
  read_links(map, entry, problems);
  read_ordering(map, entry, problems);
  if (const YamlNode* names = map.find("layer_dimension_names");
      names != nullptr && names->kind != YamlNode::Kind::null) {
    entry.layer_dimension_names = as_strings(*names, problems);
  }
  entry.allocation_only = map.boolean_or("allocation_only", false);
  map.finish();
  return entry;
}

} // namespace

const MappingEntry* MappingFile::find(std::string_view node, std::string_view op_type) const {
  for (const std::string_view wanted : {node, op_type, std::string_view("default")}) {
    const auto found = std::ranges::find_if(entries, [&](const MappingEntry& entry) {
      return entry.name == wanted && !entry.allocation_only;
    });
    if (found != entries.end())
      return &*found;
  }
  return nullptr;
}

const MappingEntry* MappingFile::find_allocation(std::string_view node) const {
  const auto found = std::ranges::find_if(entries, [&](const MappingEntry& entry) {
    return entry.allocation_only && entry.name == node;
  });
  return found == entries.end() ? nullptr : &*found;
}

MappingFile parse_mapping(std::string_view text, const std::string& origin) {
  const YamlNode root = parse_yaml(text, origin);
  require_kind(root, {FileKind::mapping});
  MappingFile file;
  file.origin = origin;
  ProblemList problems;
  if (root.kind != YamlNode::Kind::sequence || root.items.empty()) {
    problems.add(root.where, "expected a list of entries, each with a `name`");
    problems.throw_if_any();
  }
  std::map<std::pair<std::string, bool>, int> first_line;
  for (const YamlNode& item : root.items) {
    MappingEntry entry = read_entry(item, problems);
    const auto [first, is_new] =
        first_line.emplace(std::pair(entry.name, entry.allocation_only), item.where.line);
    if (!is_new && !entry.name.empty()) {
      problems.add(item.where, fmt::format("an entry for '{}' is given twice (first at line {})",
                                           entry.name, first->second));
    }
    file.entries.push_back(std::move(entry));
  }
  problems.throw_if_any();
  return file;
}

MappingFile read_mapping(const std::string& path) {
  return parse_mapping(read_file(path, kMaxMappingBytes), path);
}

} // namespace monet

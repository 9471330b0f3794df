// Reads one core file into a Core. system_reader.cpp calls it for every core of a chip.
#include "hardware/core_reader.hpp"

#include "base/shared/file_kind.hpp"
#include "base/shared/text.hpp"
#include "hardware/pricing.hpp"

#include "monet/base/files.hpp"
#include "monet/base/warnings.hpp"
#include "monet/hardware/chip.hpp"
#include "monet/hardware/read_hardware.hpp"

#include <fmt/core.h>

#include <algorithm>

namespace monet {

namespace {

constexpr std::size_t kMaxMemories = 32;

/// Core kind from the unrolled loops: a window together with channels means a convolution unit,
/// a window without channels a pooling unit.
CoreKind inferred_kind(const Core& core) {
  if (core.imc != nullptr)
    return CoreKind::array;
  bool window = false;
  bool channels = false;
  for (const auto& unrollings : core.dataflow) {
    for (const Unrolling& u : unrollings) {
      window = window || u.dim == "FX" || u.dim == "FY";
      channels = channels || u.dim == "K" || u.dim == "C";
    }
  }
  if (window && !channels)
    return CoreKind::pooling;
  const auto wide = std::ranges::count_if(core.array, [](const ArrayDim& d) { return d.size > 1; });
  return wide <= 1 ? CoreKind::vector : CoreKind::array;
}

void read_kind(YamlMap& map, ProblemList& problems, bool offchip, Core& core) {
  const YamlNode* given = map.find("kind");
  core.kind = offchip ? CoreKind::offchip : inferred_kind(core);
  if (given == nullptr)
    return;
  std::vector<std::string> names;
  for (int i = 0; i < kCoreKinds; ++i) {
    const auto kind = static_cast<CoreKind>(i);
    names.emplace_back(name_of(kind));
    if (given->scalar == names.back()) {
      core.kind = kind;
      if (core.imc != nullptr && kind != CoreKind::array)
        problems.add(given->where, "a core that computes in memory is of kind array");
      return;
    }
  }
  problems.add(given->where,
               "unknown kind '" + given->scalar + "': array, vector, pooling or offchip",
               nearest_name_hint(given->scalar, names));
}

void read_vector_figures(YamlMap& map, ProblemList& problems, Core& core) {
  if (const YamlNode* types = map.find("operator_types"))
    core.operator_types = as_strings(*types, problems);
  core.runs_vector_operators = map.boolean_or("vector_operators", false);
  if (core.runs_vector_operators && core.imc != nullptr)
    problems.add(map.find("vector_operators")->where,
                 "an array that computes in memory has no lanes for other work");
  const auto positive = [&](const char* key, double fallback) {
    const double value = map.number_or(key, fallback);
    if (value > 0)
      return value;
    problems.add(map.find(key)->where, fmt::format("'{}' must be more than 0", key));
    return fallback;
  };
  core.cycles_per_transcendental =
      positive("cycles_per_transcendental", core.cycles_per_transcendental);
  core.cycles_per_divide = positive("cycles_per_divide", core.cycles_per_divide);
}

/// "K, 32" or [K, 32].
std::optional<Unrolling> parse_unrolling(const YamlNode& node, ProblemList& problems) {
  const std::string& text = node.scalar;
  const auto comma = text.find(',');
  if (node.kind == YamlNode::Kind::sequence && node.items.size() == 2) { // [K, 32]
    const auto dim = as_string(node.items[0], problems);
    const auto factor = as_integer(node.items[1], problems);
    if (dim && factor && *factor >= 1)
      return Unrolling{*dim, *factor};
  } else if (node.kind == YamlNode::Kind::scalar && comma != std::string::npos) { // "K, 32"
    YamlNode number = node;
    number.quoted = false;
    number.scalar = trimmed(std::string_view(text).substr(comma + 1));
    const auto factor = as_integer(number, problems);
    if (!factor)
      return std::nullopt;
    if (*factor >= 1 && comma > 0)
      return Unrolling{std::string(trimmed(std::string_view(text).substr(0, comma))), *factor};
  }
  problems.add(node.where, "expected a layer dimension and a factor of at least 1, like 'K, 32'");
  return std::nullopt;
}

} // namespace

std::vector<std::vector<Unrolling>>
parse_dataflow(const YamlNode& node, const std::vector<ArrayDim>& array, ProblemList& problems) {
  std::vector<std::vector<Unrolling>> dataflow(array.size());
  YamlMap map(node, problems, YamlMap::Duplicates::last_wins);
  for (std::size_t i = 0; i < array.size(); ++i) {
    const YamlNode* list = map.find(array[i].name);
    if (list == nullptr)
      continue;
    if (list->kind != YamlNode::Kind::sequence) {
      problems.add(list->where, "expected a list like [\"K, 32\"]");
      continue;
    }
    for (const YamlNode& item : list->items) {
      auto unrolling = parse_unrolling(item, problems);
      if (!unrolling)
        continue;
      if (unrolling->factor > array[i].size) { // clipped as in ZigZag and Stream
        warn(item.where,
             fmt::format("'{0}, {1}' is wider than {2} ({3}): {3} are unrolled", unrolling->dim,
                         unrolling->factor, array[i].name, array[i].size));
        unrolling->factor = array[i].size;
      }
      dataflow[i].push_back(std::move(*unrolling));
    }
    check_width(dataflow[i], array[i], list->where, problems);
  }
  map.finish();
  return dataflow;
}

namespace {

/// Reports missing ports. Inputs move down through every level that holds them; outputs enter from
/// below and move up.
void require_ports(const Core& core, const YamlNode& memories, ProblemList& problems) {
  for (const MemoryOperand operand : {MemoryOperand::I1, MemoryOperand::I2, MemoryOperand::O}) {
    const std::vector<std::size_t> levels = core.levels(operand);
    const bool output = operand == MemoryOperand::O;
    for (const std::size_t level : levels) {
      const bool above = level != levels.back();
      const Memory& memory = core.memories[level];
      const auto require = [&](Direction direction, std::string_view name) {
        if (port_of(memory, operand, direction) != nullptr)
          return;
        problems.add(memories.entries[level].key_where,
                     fmt::format("memory '{}' has no port for '{}, {}'", memory.name,
                                 name_of(operand), name));
      };
      require(Direction::tl, "tl");
      if (output)
        require(Direction::fl, "fl");
      if (above && output)
        require(Direction::th, "th");
      if (above && !output)
        require(Direction::fh, "fh");
    }
  }
}

} // namespace

Core parse_core_node(const YamlNode& root, ProblemList& problems, bool offchip) {
  Core core;
  core.origin = root.where.origin;
  const std::size_t problems_before = problems.size();
  YamlMap map(root, problems, YamlMap::Duplicates::last_wins);
  core.name = map.require_string("name");
  map.ignore("frequency_hz"); // of a single-core chip: read by read_chip
  map.ignore("type");         // newer system files: zigzag.compute
  core.technology_nm = read_technology(map, problems);
  const YamlNode* array = map.find("operational_array");
  if (array == nullptr)
    array = map.find("multipliers"); // its older name
  if (array != nullptr) {
    read_array(*array, problems, offchip, core);
  } else if (root.kind == YamlNode::Kind::map) {
    problems.add(root.where, "key 'operational_array' is missing");
  }
  if (const YamlNode* memories = map.require("memories")) {
    if (memories->kind != YamlNode::Kind::map || memories->entries.empty() ||
        memories->entries.size() > kMaxMemories) {
      problems.add(memories->where,
                   fmt::format("expected a map of 1 to {} memories", kMaxMemories));
    } else {
      const YamlMap names(*memories, problems); // reports duplicate memories
      for (const auto& entry : memories->entries) {
        core.memories.push_back(read_memory(entry, core.array, offchip, problems));
      }
      if (core.imc != nullptr)
        find_imc_cells(*memories, problems, core);
    }
  }
  const YamlNode* dataflow = map.find("dataflows");
  if (dataflow != nullptr && dataflow->kind != YamlNode::Kind::null) {
    core.dataflow = parse_dataflow(*dataflow, core.array, problems);
    core.dataflow_where = dataflow->where;
  }
  read_kind(map, problems, offchip, core);
  read_vector_figures(map, problems, core);
  read_program(map, problems, core);
  map.finish();
  if (problems.size() == problems_before && core.kind != CoreKind::offchip)
    require_ports(core, *map.find("memories"), problems);
  return core;
}

Core parse_core(std::string_view text, const std::string& origin) {
  const YamlNode root = parse_yaml(text, origin);
  require_kind(root, {FileKind::core});
  ProblemList problems;
  Core core = parse_core_node(root, problems, false);
  problems.throw_if_any();
  price(core, 0);
  return core;
}

Core read_core(const std::string& path) {
  return parse_core(read_file(path, std::size_t{1} << 24), path);
}

} // namespace monet

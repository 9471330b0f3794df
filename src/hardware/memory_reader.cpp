// Reads one entry of `memories` of a core file, in either schema. core_reader.cpp calls it.
#include "base/shared/names.hpp"
#include "base/shared/text.hpp"
#include "hardware/core_reader.hpp"
#include "hardware/pricing.hpp"
#include "hardware/shared/memory_model.hpp"
#include "hardware/shared/technology.hpp"

#include "monet/base/warnings.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace monet {

namespace {

constexpr std::int64_t kMaxPorts = 64;
// Limits beyond any real machine that keep sums and products of a few values in range.
constexpr std::int64_t kMaxWidth = std::int64_t{1} << 32; // bits per cycle
constexpr std::int64_t kMaxSize = std::int64_t{1} << 56;  // bits
constexpr std::array<Named<MemoryOperand>, kMemoryOperands> kOperands{
    {{"I1", MemoryOperand::I1}, {"I2", MemoryOperand::I2}, {"O", MemoryOperand::O}}};
constexpr std::array<Named<PortType>, 3> kPortTypes{
    {{"read", PortType::read}, {"write", PortType::write}, {"read_write", PortType::read_write}}};
constexpr std::array<Named<Direction>, kDirections> kDirectionNames{
    {{"fh", Direction::fh}, {"tl", Direction::tl}, {"fl", Direction::fl}, {"th", Direction::th}}};

/// Whether a port serves the direction: data leave through read ports and enter through write
/// ports.
bool allows(PortType type, Direction direction) {
  const bool leaves = direction == Direction::tl || direction == Direction::th;
  return type == PortType::read_write || (type == PortType::read) == leaves;
}

void add_use(MemoryPort& port, PortUse use, const SourceLoc& where, ProblemList& problems) {
  if (!allows(port.type, use.direction)) {
    problems.add(where,
                 fmt::format("port '{}' cannot serve this direction: {}", port.name,
                             port.type == PortType::read ? "it only reads" : "it only writes"));
    return;
  }
  port.allocation.push_back(use);
}

std::optional<PortUse> parse_use(const YamlNode& node, ProblemList& problems) {
  const auto text = as_string(node, problems);
  if (!text)
    return std::nullopt;
  const auto comma = text->find(',');
  if (comma != std::string::npos) {
    const auto direction =
        value_named(kDirectionNames, trimmed(std::string_view(*text).substr(comma + 1)));
    if (direction) {
      const auto operand = parse_memory_operand(trimmed(std::string_view(*text).substr(0, comma)),
                                                node.where, problems);
      return operand ? std::optional(PortUse{*operand, *direction}) : std::nullopt;
    }
  }
  problems.add(
      node.where,
      fmt::format("expected an operand and a direction like 'I1, tl' (fh, tl, fl, th), found '{}'",
                  text->substr(0, 60)));
  return std::nullopt;
}

std::int64_t integer_from(YamlMap& map, const char* key, std::int64_t least, std::int64_t most,
                          ProblemList& problems) {
  const YamlNode* node = map.require(key);
  return node == nullptr ? least
                         : integer_within(*node, fmt::format("'{}'", key), least, most, problems)
                               .value_or(least);
}

std::int64_t positive(YamlMap& map, const char* key, std::int64_t most, ProblemList& problems) {
  return integer_from(map, key, 1, most, problems);
}

std::int64_t width_or(YamlMap& map, const char* key, std::int64_t fallback, ProblemList& problems) {
  return map.has(key) ? positive(map, key, kMaxWidth, problems) : fallback;
}

std::optional<PortType> parse_port_type(const YamlNode& node, ProblemList& problems) {
  if (const auto type = value_named(kPortTypes, node.scalar))
    return type;
  problems.add(node.where, "unknown port type '" + node.scalar + "': read, write or read_write");
  return std::nullopt;
}

/// Reads `ports: [{name, type, bandwidth_min, bandwidth_max, allocation: ["I1, tl"]}]`.
void read_named_ports(const YamlNode& list, Memory& memory, ProblemList& problems) {
  for (const YamlNode& item : list.items) {
    YamlMap map(item, problems, YamlMap::Duplicates::last_wins);
    MemoryPort port;
    port.name = map.require_string("name");
    if (const YamlNode* type = map.require("type")) {
      port.type = parse_port_type(*type, problems).value_or(PortType::read_write);
    }
    port.bandwidth_max = positive(map, "bandwidth_max", kMaxWidth, problems);
    port.bandwidth_min = width_or(map, "bandwidth_min", port.bandwidth_max, problems);
    if (port.bandwidth_min > port.bandwidth_max) {
      problems.add(item.where, fmt::format("bandwidth_min {} is above bandwidth_max {}",
                                           port.bandwidth_min, port.bandwidth_max));
    }
    const YamlNode* uses = map.require("allocation");
    if (uses != nullptr && uses->kind != YamlNode::Kind::sequence) {
      problems.add(uses->where, "expected a list like [\"I1, tl\"]");
    } else if (uses != nullptr) {
      for (const YamlNode& use : uses->items) {
        if (const auto parsed = parse_use(use, problems))
          add_use(port, *parsed, use.where, problems);
      }
    }
    map.finish();
    memory.ports.push_back(std::move(port));
  }
}

/// Makes ports from the counts r_port, w_port, rw_port and widths r_bw, w_bw of the older schema;
/// operands are assigned later.
void make_counted_ports(YamlMap& map, Memory& memory, ProblemList& problems) {
  const std::int64_t read_width = positive(map, "r_bw", kMaxWidth, problems);
  const std::int64_t write_width = positive(map, "w_bw", kMaxWidth, problems);
  const std::int64_t read_min = width_or(map, "min_r_granularity", read_width, problems);
  const std::int64_t write_min = width_or(map, "min_w_granularity", write_width, problems);
  const auto make = [&](const char* key, const char* prefix, PortType type, std::int64_t width,
                        std::int64_t least) {
    const std::int64_t count = map.integer_or(key, 0);
    if (count < 0 || count > kMaxPorts) {
      problems.add(map.find(key)->where,
                   fmt::format("'{}' must be between 0 and {}", key, kMaxPorts));
      return;
    }
    for (std::int64_t i = 1; i <= count; ++i) {
      memory.ports.push_back(
          {fmt::format("{}_{}", prefix, i), type, std::min(least, width), width, {}});
    }
  };
  make("r_port", "r_port", PortType::read, read_width, read_min);
  make("w_port", "w_port", PortType::write, write_width, write_min);
  // Both directions have one width: the narrower one, so that no direction is faster than the file
  // specifies.
  make("rw_port", "rw_port", PortType::read_write, std::min(read_width, write_width),
       std::min(read_min, write_min));
}

/// Assigns operands to ports: `ports: [{fh: w_port_1, tl: r_port_1}]`, one map per operand in the
/// order of `operands`.
void assign_counted_ports(const YamlNode& list, Memory& memory, ProblemList& problems) {
  if (list.items.size() != memory.operands.size()) {
    problems.add(list.where, fmt::format("{} port maps for {} operands", list.items.size(),
                                         memory.operands.size()));
    return;
  }
  const std::vector<std::string> names = names_of(memory.ports);
  for (std::size_t i = 0; i < list.items.size(); ++i) {
    YamlMap map(list.items[i], problems, YamlMap::Duplicates::last_wins);
    for (const auto& [key, direction] : kDirectionNames) {
      const YamlNode* wanted = map.find(key);
      if (wanted == nullptr || wanted->kind == YamlNode::Kind::null)
        continue;
      const auto found = std::ranges::find(names, wanted->scalar);
      if (found == names.end()) {
        problems.add(wanted->where,
                     "no port is called '" + wanted->scalar + "' (see r_port, w_port, rw_port)",
                     nearest_name_hint(wanted->scalar, names));
        continue;
      }
      MemoryPort& port = memory.ports[static_cast<std::size_t>(found - names.begin())];
      add_use(port, {memory.operands[i], direction}, wanted->where, problems);
    }
    map.finish();
  }
}

void read_operands(YamlMap& map, Memory& memory, ProblemList& problems) {
  const YamlNode* list = map.require("operands");
  if (list == nullptr)
    return;
  for (const std::string& name : as_strings(*list, problems)) {
    const auto operand = parse_memory_operand(name, list->where, problems);
    if (!operand)
      continue;
    if (std::ranges::find(memory.operands, *operand) != memory.operands.end()) {
      problems.add(list->where, "operand '" + name + "' is listed twice");
      continue;
    }
    memory.operands.push_back(*operand);
  }
  if (memory.operands.empty())
    problems.add(list->where, "a memory must hold at least one operand");
}

void read_served_dimensions(YamlMap& map, const std::vector<ArrayDim>& array, Memory& memory,
                            ProblemList& problems) {
  memory.serves.assign(array.size(), false);
  const YamlNode* list = map.require("served_dimensions");
  if (list == nullptr)
    return;
  const std::vector<std::string> names = names_of(array);
  for (const std::string& name : as_strings(*list, problems)) {
    const auto found = std::ranges::find(names, name);
    if (found == names.end()) {
      problems.add(list->where, "'" + name + "' is not a dimension of the operational array",
                   nearest_name_hint(name, names));
    } else {
      memory.serves[static_cast<std::size_t>(found - names.begin())] = true;
    }
  }
}

void require_used_ports(const Memory& memory, const SourceLoc& where, ProblemList& problems) {
  for (const MemoryPort& port : memory.ports) {
    for (const PortUse& use : port.allocation) {
      if (std::ranges::find(memory.operands, use.operand) == memory.operands.end()) {
        problems.add(
            where, fmt::format("port '{}' serves an operand the memory does not hold", port.name));
        return;
      }
    }
  }
}

/// Reads `banks`, `row_bits` and `t_row` of `dram: {...}`, which must be set together.
void read_dram_rows(YamlMap& map, Memory& memory, ProblemList& problems) {
  constexpr std::int64_t kMaxBanks = 65536;
  constexpr std::int64_t kMaxCycles = std::int64_t{1} << 20;
  if (!map.has("banks") && !map.has("row_bits") && !map.has("t_row"))
    return;
  DramRows rows;
  rows.banks = integer_from(map, "banks", 1, kMaxBanks, problems);
  rows.row_bits = integer_from(map, "row_bits", 1, kMaxWidth, problems);
  rows.t_row = integer_from(map, "t_row", 0, kMaxCycles, problems);
  memory.dram_rows = rows;
}

/// Reads `dram: lpddr5` or `dram: {kind: lpddr5, banks: 16, row_bits: 16384, t_row: 40}` and
/// returns the node of the kind, if present.
const YamlNode* read_dram_kind(const YamlNode& dram, Memory& memory, ProblemList& problems) {
  if (dram.kind != YamlNode::Kind::map)
    return &dram;
  YamlMap map(dram, problems);
  const YamlNode* kind = map.find("kind");
  read_dram_rows(map, memory, problems);
  if (kind == nullptr && dram.entries.empty())
    problems.add(dram.where, "expected 'kind', or 'banks', 'row_bits' and 't_row', or all four");
  map.finish();
  return kind;
}

/// Reads `dram: lpddr5` and `dram_channels: 4`. The kind prices the memory unless the file has
/// figures.
void read_dram(YamlMap& map, Memory& memory, ProblemList& problems) {
  constexpr std::int64_t kMaxChannels = 1024;
  const YamlNode* dram = map.find("dram");
  const YamlNode* kind = dram != nullptr ? read_dram_kind(*dram, memory, problems) : nullptr;
  if (const YamlNode* channels = map.find("dram_channels")) {
    memory.dram_channels = positive(map, "dram_channels", kMaxChannels, problems);
    if (kind == nullptr)
      problems.add(channels->where, "'dram_channels' needs the kind of DRAM, like dram: lpddr5");
  }
  const YamlNode* type = map.find("mem_type"); // of ZigZag: sram or dram
  if (kind == nullptr && memory.automatic_cost && type != nullptr && type->scalar == "dram")
    memory.dram_kind = kDefaultDram;
  if (kind == nullptr)
    return;
  if (find_dram_kind(kind->scalar) == nullptr) {
    const std::vector<std::string> names = names_of(dram_kinds());
    problems.add(kind->where,
                 fmt::format("unknown kind of DRAM '{}': {}", kind->scalar.substr(0, 40),
                             fmt::join(names, ", ")),
                 nearest_name_hint(kind->scalar, names));
    return;
  }
  memory.dram_kind = kind->scalar;
  if (!map.has("r_cost") && !map.has("w_cost"))
    memory.automatic_cost = true;
}

/// Reports an on-chip memory outside the range of memory_cost.
void require_modelled_range(const Memory& memory, const SourceLoc& where, ProblemList& problems) {
  std::int64_t word = 0;
  for (const MemoryPort& port : memory.ports)
    word = std::max(word, port.bandwidth_max);
  if (memory.size.value > kMaxModelledBits) {
    problems.add(
        where,
        fmt::format(
            "auto_cost_extraction supports on-chip memories up to {} bits (1 GiB), this one has {}",
            kMaxModelledBits, memory.size.value),
        "off-chip memories are priced by kind, like dram: lpddr5");
  }
  if (word > kMaxWordBits) {
    problems.add(where, fmt::format("auto_cost_extraction supports ports up to {} bits, one has {}",
                                    kMaxWordBits, word));
  }
}

} // namespace

std::optional<MemoryOperand> parse_memory_operand(std::string_view name, const SourceLoc& where,
                                                  ProblemList& problems) {
  if (const auto operand = value_named(kOperands, name))
    return operand;
  problems.add(where, fmt::format("unknown memory operand '{}': I1, I2 or O", name.substr(0, 60)));
  return std::nullopt;
}

double read_figure(YamlMap& map, const char* key, bool required, ProblemList& problems) {
  constexpr double kMax = 1e15; // keeps totals of a step finite
  const YamlNode* node = required ? map.require(key) : map.find(key);
  if (node == nullptr)
    return 0;
  const auto value = as_number(*node, problems);
  if (!value || (*value >= 0 && *value <= kMax))
    return value.value_or(0);
  problems.add(node->where, fmt::format("'{}' must be between 0 and {:g}", key, kMax));
  return 0;
}

double read_frequency(YamlMap& map, ProblemList& problems) {
  const YamlNode* node = map.find("frequency_hz");
  if (node == nullptr)
    return 0;
  constexpr double kSlowestClock = 1e6; // hertz
  constexpr double kFastestClock = 1e11;
  const std::optional<double> value = as_number(*node, problems);
  if (value && *value <= 0)
    problems.add(node->where, "'frequency_hz' must be more than 0");
  else if (value && (*value < kSlowestClock || *value > kFastestClock))
    warn(node->where,
         fmt::format("'frequency_hz' is an unusually {} clock of {:g} Hz",
                     *value < kSlowestClock ? "slow" : "fast", *value),
         "250e6 is 250 MHz");
  return value.value_or(0);
}

double read_technology(YamlMap& map, ProblemList& problems) {
  const YamlNode* node = map.find("technology_nm");
  if (node == nullptr)
    return 0;
  const auto value = as_number(*node, problems);
  if (!value || (*value >= kSmallestNode && *value <= kLargestNode))
    return value.value_or(0);
  problems.add(node->where, fmt::format("'technology_nm' must be between {:g} and {:g}, is {:g}",
                                        kSmallestNode, kLargestNode, *value));
  return 0;
}

Memory read_memory(const YamlNode::Entry& entry, const std::vector<ArrayDim>& array, bool offchip,
                   ProblemList& problems) {
  Memory memory;
  memory.name = entry.key;
  YamlMap map(entry.value, problems, YamlMap::Duplicates::last_wins);
  memory.size = {positive(map, "size", kMaxSize, problems)};
  memory.automatic_cost = map.boolean_or("auto_cost_extraction", false);
  read_dram(map, memory, problems);
  memory.read_energy_pj = read_figure(map, "r_cost", !memory.automatic_cost, problems);
  memory.write_energy_pj = read_figure(map, "w_cost", !memory.automatic_cost, problems);
  memory.area_mm2 = read_figure(map, "area", false, problems);
  memory.leakage_pj_per_cycle = read_figure(map, "leakage_pj_per_cycle", false, problems);
  memory.latency_cycles = map.integer_or("latency", 1);
  if (memory.latency_cycles > 1)
    warn(map.find("latency")->where,
         fmt::format("the latency of {} cycles delays element-wise operators only: products treat "
                     "every access as pipelined",
                     memory.latency_cycles));
  memory.non_volatile = map.boolean_or("non_volatile", false);
  if (map.boolean_or("force_double_buffering", false))
    warn(map.find("force_double_buffering")->where, "force_double_buffering is ignored");
  read_operands(map, memory, problems);
  read_served_dimensions(map, array, memory, problems);
  const bool counted = map.has("r_bw") || map.has("w_bw");
  if (counted)
    make_counted_ports(map, memory, problems);
  const YamlNode* ports = map.require("ports");
  if (ports != nullptr && ports->kind != YamlNode::Kind::sequence) {
    problems.add(ports->where, "expected a list of ports");
  } else if (ports != nullptr && static_cast<std::int64_t>(ports->items.size()) > kMaxPorts) {
    problems.add(ports->where, fmt::format("more than {} ports", kMaxPorts));
  } else if (ports != nullptr) {
    counted ? assign_counted_ports(*ports, memory, problems)
            : read_named_ports(*ports, memory, problems);
    require_used_ports(memory, ports->where, problems);
  }
  if (memory.automatic_cost && !offchip && !is_modelled_dram(memory))
    require_modelled_range(memory, entry.key_where, problems);
  map.finish();
  return memory;
}

} // namespace monet

// Reads a system file and the core files it names into a Chip; read_chip() begins here.
#include "base/shared/file_kind.hpp"
#include "base/shared/text.hpp"
#include "hardware/core_reader.hpp"
#include "hardware/pricing.hpp"
#include "hardware/shared/memory_model.hpp"
#include "hardware/sharing_reader.hpp"

#include "monet/base/files.hpp"
#include "monet/base/warnings.hpp"
#include "monet/hardware/read_hardware.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <list>
#include <map>

namespace monet {

namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMaxCores = 1024;
constexpr std::size_t kMaxLinks = 65536;
constexpr std::size_t kMaxCoreFileBytes = std::size_t{1} << 24;

/// Defaults and context for reading the connectivity of a chip.
struct LinkDefaults {
  std::int64_t bandwidth = 0;
  double energy_per_cycle = 0;
  std::int64_t latency_cycles = 0;
};

std::string core_label(const Chip& chip, CoreId core) {
  return core == chip.offchip ? "dram" : fmt::format("{}", core.index());
}

/// Adds a bus for more than two cores or if `bus` is set; otherwise one wire per direction, as in
/// Stream.
void add_link(Link link, bool bus, Chip& chip) {
  if (bus || link.cores.size() > 2) {
    link.name = "bus";
    for (const CoreId core : link.cores) {
      link.name += (core == link.cores.front() ? " " : "-") + core_label(chip, core);
    }
    chip.links.push_back(std::move(link));
    return;
  }
  link.reach = LinkReach::forward;
  for (int way = 0; way < 2; ++way) {
    link.name = core_label(chip, link.cores[0]) + ">" + core_label(chip, link.cores[1]);
    chip.links.push_back(link);
    std::swap(link.cores[0], link.cores[1]);
  }
}

std::int64_t read_bandwidth(const YamlNode& node, ProblemList& problems) {
  constexpr std::int64_t kMax = std::int64_t{1} << 32;
  return integer_within(node, "'bandwidth'", 1, kMax, problems, " bits per cycle").value_or(1);
}

/// Reads `latency_cycles` of a link, or the default of all links; `fallback` if absent.
std::int64_t read_latency(YamlMap& map, std::int64_t fallback, ProblemList& problems) {
  constexpr std::int64_t kMax = std::int64_t{1} << 20;
  const YamlNode* node = map.find("latency_cycles");
  if (node == nullptr)
    return fallback;
  return integer_within(*node, "'latency_cycles'", 0, kMax, problems, " cycles").value_or(0);
}

/// Reads {type: link|bus, cores: [0, 1], bandwidth: 32, unit_energy_cost: 0}.
void read_link_map(const YamlNode& node, const LinkDefaults& defaults, Chip& chip,
                   ProblemList& problems) {
  YamlMap map(node, problems);
  Link link;
  const std::string type = map.string_or("type", "link");
  if (type != "link" && type != "bus") {
    problems.add(map.find("type")->where,
                 "unknown link type '" + type.substr(0, 40) + "': link or bus");
  }
  if (const YamlNode* cores = map.require("cores"))
    link.cores = core_ids(*cores, chip.cores.size(), 2, problems);
  const YamlNode* bandwidth =
      defaults.bandwidth == 0 ? map.require("bandwidth") : map.find("bandwidth");
  link.bandwidth_bits_per_cycle = bandwidth ? read_bandwidth(*bandwidth, problems)
                                            : std::max<std::int64_t>(defaults.bandwidth, 1);
  link.energy_pj_per_cycle = map.has("unit_energy_cost")
                                 ? read_figure(map, "unit_energy_cost", true, problems)
                                 : defaults.energy_per_cycle;
  link.energy_pj_per_bit = read_figure(map, "energy_pj_per_bit", false, problems);
  link.length_mm = read_figure(map, "length_mm", false, problems);
  link.latency_cycles = read_latency(map, defaults.latency_cycles, problems);
  map.finish();
  if (link.cores.size() >= 2)
    add_link(std::move(link), type == "bus", chip);
}

void read_links(const YamlNode& node, const LinkDefaults& defaults, Chip& chip,
                ProblemList& problems) {
  if (node.kind == YamlNode::Kind::null)
    return;
  if (node.kind != YamlNode::Kind::sequence || node.items.size() > kMaxLinks) {
    problems.add(node.where, fmt::format("expected a list of at most {} links", kMaxLinks));
    return;
  }
  for (const YamlNode& item : node.items) {
    if (item.kind == YamlNode::Kind::map) {
      read_link_map(item, defaults, chip, problems);
      continue;
    }
    Link link;
    link.cores = core_ids(item, chip.cores.size(), 2, problems);
    link.bandwidth_bits_per_cycle = defaults.bandwidth;
    link.energy_pj_per_cycle = defaults.energy_per_cycle;
    link.latency_cycles = defaults.latency_cycles;
    if (defaults.bandwidth == 0)
      problems.add(item.where, "this link needs the file's 'bandwidth'");
    if (link.cores.size() >= 2)
      add_link(std::move(link), false, chip);
  }
}

/// Adds off-chip links unless the file connects the off-chip memory itself. Every core reaches it
/// in one hop: one link with the bandwidth of read-write ports, or one link per direction for
/// separate ports.
void add_offchip_links(Chip& chip) {
  if (!chip.offchip || chip.compute_cores() == 0)
    return;
  for (const Link& link : chip.links) {
    if (std::ranges::find(link.cores, *chip.offchip) != link.cores.end())
      return;
  }
  const OffchipPort port = offchip_port(chip);
  std::vector<CoreId> all;
  for (std::size_t i = 0; i < chip.cores.size(); ++i)
    all.emplace_back(i);
  const auto add = [&](const char* name, LinkReach reach, std::int64_t bandwidth) {
    chip.links.push_back({name, all, reach, bandwidth});
  };
  if (port.shared) {
    add("dram", LinkReach::offchip_both,
        std::max(port.read_bits_per_cycle, port.write_bits_per_cycle));
  } else {
    add("dram read", LinkReach::offchip_read, port.read_bits_per_cycle);
    add("dram write", LinkReach::offchip_write, port.write_bits_per_cycle);
  }
}

Core core_from_file(const YamlNode& name, bool offchip, const NodeOpener& open,
                    std::map<std::string, Core>& seen, ProblemList& problems) {
  const auto text = as_string(name, problems);
  if (!text)
    return {};
  const std::string key = (offchip ? "offchip:" : "core:") + *text;
  const auto found = seen.find(key);
  if (found != seen.end())
    return found->second;
  Core core;
  try {
    core = parse_core_node(open(*text, name.where), problems, offchip);
  } catch (const InputError& error) {
    problems.add(error.problems());
  }
  seen.emplace(key, core);
  return core;
}

void read_cores(const YamlNode& node, std::optional<std::size_t> offchip_id, const NodeOpener& open,
                std::map<std::string, Core>& seen, Chip& chip, ProblemList& problems) {
  if (node.kind != YamlNode::Kind::map || node.entries.empty() || node.entries.size() > kMaxCores) {
    problems.add(node.where, fmt::format("expected a map of 1 to {} cores, id: file", kMaxCores));
    return;
  }
  std::vector<const YamlNode::Entry*> by_id(node.entries.size());
  for (const auto& entry : node.entries) {
    const auto id = number_in<std::size_t>(entry.key);
    if (!id || *id >= by_id.size() || by_id[*id] != nullptr) {
      problems.add(entry.key_where, fmt::format("core ids must be 0 to {}, each once; found '{}'",
                                                by_id.size() - 1, entry.key.substr(0, 20)));
      return;
    }
    by_id[*id] = &entry;
  }
  for (std::size_t id = 0; id < by_id.size(); ++id) {
    const bool offchip = offchip_id.value_or(by_id.size()) == id;
    chip.cores.push_back(core_from_file(by_id[id]->value, offchip, open, seen, problems));
    if (chip.cores.back().kind == CoreKind::offchip && !offchip) {
      problems.add(by_id[id]->value.where,
                   fmt::format("core {} is an off-chip memory, but not the chip's", id),
                   "name it by offchip_core or offchip_core_id");
    }
  }
}

/// Reads the cores whose routers forward data; all others do not.
void read_routers(const YamlNode& node, Chip& chip, ProblemList& problems) {
  chip.routers.assign(chip.cores.size(), false);
  if (node.kind == YamlNode::Kind::sequence && node.items.empty())
    return;
  for (const CoreId id : core_ids(node, chip.cores.size(), 1, problems)) {
    chip.routers[id.index()] = true;
    if (id == chip.offchip)
      problems.add(node.where, "the off-chip memory passes nothing on");
  }
}

/// Moves the off-chip core to the end of the list: a file (`offchip_core`) or one of `cores`
/// (`offchip_core_id`).
void place_offchip(YamlMap& map, std::optional<std::size_t> offchip_id, const NodeOpener& open,
                   std::map<std::string, Core>& seen, Chip& chip, ProblemList& problems) {
  const YamlNode* where = map.find("offchip_core");
  if (where != nullptr && where->kind != YamlNode::Kind::null) {
    chip.cores.push_back(core_from_file(*where, true, open, seen, problems));
  } else if (offchip_id && !chip.cores.empty()) {
    where = map.find("offchip_core_id");
    if (*offchip_id + 1 != chip.cores.size()) {
      problems.add(where->where, "the off-chip core must be the one with the highest id");
      return;
    }
  } else {
    return;
  }
  Core& core = chip.cores.back();
  core.kind = CoreKind::offchip;
  chip.offchip = CoreId(chip.cores.size() - 1);
  if (chip.cores.size() == 1)
    problems.add(where->where, "a chip needs a core in addition to its off-chip memory");
  if (core.memories.empty())
    return; // reported already
  const OffchipPort port = offchip_port(chip);
  if (port.read_bits_per_cycle == 0 || port.write_bits_per_cycle == 0) {
    problems.add(where->where,
                 fmt::format("the off-chip memory '{}' needs a port to read and one to write",
                             core.memories.back().name));
  }
}

void require_operand_memories(const Chip& chip, const YamlNode& root, ProblemList& problems) {
  for (std::size_t i = 0; i < chip.cores.size(); ++i) {
    const Core& core = chip.cores[i];
    if (core.memories.empty())
      continue; // reported already
    for (const MemoryOperand operand : {MemoryOperand::I1, MemoryOperand::O}) {
      if (core.top(operand) != nullptr)
        continue;
      problems.add(
          {core.origin.empty() ? root.where.origin : core.origin},
          fmt::format("core '{}' has no memory for operand {}", core.name, name_of(operand)));
    }
  }
}

/// Rejects ports of an off-chip memory that are faster than its channels in the file.
void require_channels(const Chip& chip, ProblemList& problems) {
  if (!chip.offchip || chip.frequency_hz <= 0)
    return;
  const Core& core = chip.cores[chip.offchip->index()];
  const Memory& memory = core.memories.back();
  const DramKind* kind = find_dram_kind(memory.dram_kind);
  if (kind == nullptr || memory.dram_channels == 0)
    return;
  double bits = 0;
  for (const MemoryPort& port : memory.ports)
    bits += static_cast<double>(port.bandwidth_max);
  constexpr double kBitsOfGigabyte = 8e9;
  const double wanted = bits * chip.frequency_hz / kBitsOfGigabyte;
  const double offered = kind->gigabytes_per_second * static_cast<double>(memory.dram_channels);
  if (wanted > offered * (1 + 1e-9)) {
    problems.add(
        {core.origin},
        fmt::format("the ports of memory '{}' use {:.4g} GB/s at {:g} Hz; {} channels of {} "
                    "provide {:.4g} GB/s",
                    memory.name, wanted, chip.frequency_hz, memory.dram_channels, kind->name,
                    offered),
        fmt::format("{:.0f} channels are enough", std::ceil(wanted / kind->gigabytes_per_second)));
  }
}

/// Rejects DRAM rows in on-chip memories: only transfers that the schedule places use rows.
void require_rows_offchip(const Chip& chip, ProblemList& problems) {
  for (std::size_t i = 0; i < chip.compute_cores(); ++i) {
    for (const Memory& memory : chip.cores[i].memories) {
      if (memory.dram_rows)
        problems.add({chip.cores[i].origin},
                     fmt::format("memory '{}' of core '{}' has banks and rows, but only the "
                                 "off-chip memory may",
                                 memory.name, chip.cores[i].name));
    }
  }
}

bool is_system_file(const YamlNode& root) {
  return std::ranges::any_of(root.entries, [](const auto& entry) { return entry.key == "cores"; });
}

/// Reads a single core file as a chip: the outermost memory of all operands moves off-chip if its
/// name begins with dram or offchip.
Chip chip_of_one_core(const YamlNode& root, ProblemList& problems) {
  Chip chip;
  Core core = parse_core_node(root, problems, false);
  problems.throw_if_any();
  chip.name = core.name;
  YamlMap map(root, problems, YamlMap::Duplicates::last_wins);
  chip.frequency_hz = read_frequency(map, problems);
  const Memory& outermost = core.memories.back();
  const bool offchip =
      outermost.operands.size() == kMemoryOperands && core.memories.size() > 1 &&
      (outermost.name.starts_with("dram") || outermost.name.starts_with("offchip"));
  if (offchip) {
    Core dram;
    dram.name = outermost.name;
    dram.kind = CoreKind::offchip;
    dram.array = core.array;
    dram.origin = core.origin;
    dram.memories.push_back(outermost);
    core.memories.pop_back();
    chip.cores = {std::move(core), std::move(dram)};
    chip.offchip = CoreId(std::size_t{1});
  } else {
    chip.cores = {std::move(core)};
  }
  return chip;
}

Chip chip_of_system(const YamlNode& root, const NodeOpener& open, ProblemList& problems) {
  Chip chip;
  YamlMap map(root, problems);
  chip.name = map.require_string("name");
  chip.frequency_hz = read_frequency(map, problems);
  chip.technology_nm = read_technology(map, problems);
  map.ignore("core_coordinates");
  std::map<std::string, Core> seen;
  std::optional<std::size_t> offchip_id;
  if (const YamlNode* id = map.find("offchip_core_id")) {
    offchip_id = number_in<std::size_t>(id->scalar);
    if (!offchip_id)
      problems.add(id->where, "'offchip_core_id' must be the id of a core");
  }
  if (const YamlNode* cores = map.require("cores"))
    read_cores(*cores, offchip_id, open, seen, chip, problems);
  // Without cores, keys that name cores cannot be checked.
  const bool has_cores = !chip.cores.empty();
  for (const char* key :
       {"offchip_core", "core_connectivity", "core_memory_sharing", "memory_aliases", "routers"})
    map.ignore(key);
  if (has_cores)
    place_offchip(map, offchip_id, open, seen, chip, problems);
  LinkDefaults defaults;
  if (const YamlNode* bandwidth = map.find("bandwidth")) {
    defaults.bandwidth = read_bandwidth(*bandwidth, problems);
  }
  defaults.energy_per_cycle = read_figure(map, "unit_energy_cost", false, problems);
  chip.unit_energy_cost = defaults.energy_per_cycle;
  defaults.latency_cycles = read_latency(map, 0, problems);
  if (const YamlNode* links = map.find("core_connectivity"); links != nullptr && has_cores) {
    read_links(*links, defaults, chip, problems);
  }
  if (const YamlNode* sharing = map.find("core_memory_sharing"); sharing != nullptr && has_cores) {
    read_sharing(*sharing, chip, problems);
  }
  if (const YamlNode* aliases = map.find("memory_aliases"); aliases != nullptr && has_cores)
    read_aliases(*aliases, chip, problems);
  if (problems.empty()) {
    const std::vector<std::vector<CoreId>> groups = chip.shared_memory;
    join_groups(chip, map.find("memory_aliases"), problems);
    require_common_memories(map.find("core_memory_sharing"), groups, chip, problems);
  }
  if (const YamlNode* routers = map.find("routers"); routers != nullptr && has_cores)
    read_routers(*routers, chip, problems);
  map.finish();
  return chip;
}

} // namespace

Chip make_chip(const YamlNode& root, const std::string& origin, const NodeOpener& open) {
  require_kind(root, {FileKind::system, FileKind::core});
  ProblemList problems;
  Chip chip = is_system_file(root) ? chip_of_system(root, open, problems)
                                   : chip_of_one_core(root, problems);
  chip.origin = origin;
  if (problems.empty())
    require_operand_memories(chip, root, problems);
  if (problems.empty())
    require_channels(chip, problems);
  if (problems.empty())
    require_rows_offchip(chip, problems);
  problems.throw_if_any();
  price(chip);
  add_offchip_links(chip);
  make_routes(chip);
  return chip;
}

Chip parse_chip(std::string_view text, const std::string& origin, const FileOpener& open) {
  std::list<YamlNode> files;
  const NodeOpener parsed = [&](const std::string& name,
                                const SourceLoc& where) -> const YamlNode& {
    const FileText file = open(name, where);
    const YamlNode& core = files.emplace_back(parse_yaml(file.text, file.path));
    require_kind(core, {FileKind::core});
    return core;
  };
  return make_chip(parse_yaml(text, origin), origin, parsed);
}

std::string find_core_file(const std::string& system, const std::string& name,
                           const SourceLoc& where) {
  const fs::path folder = fs::path(system).parent_path();
  const fs::path file = fs::path(name).filename();
  std::vector<fs::path> candidates{folder / "cores" / file, folder / file,
                                   folder.parent_path() / "cores" / file};
  if (file != fs::path(name))
    candidates.insert(candidates.begin(), folder / name);
  for (const fs::path& candidate : candidates) {
    const std::string normal = candidate.lexically_normal().string();
    if (!file.empty() && is_file(normal))
      return normal;
  }
  throw InputError(
      where,
      fmt::format(
          "core file '{}' is neither in the folder of this file nor in its subfolder 'cores'",
          name));
}

Chip read_chip(const std::string& path) {
  const FileOpener open = [&path](const std::string& name, const SourceLoc& where) {
    const std::string file = find_core_file(path, name, where);
    return FileText{file, read_file(file, kMaxCoreFileBytes)};
  };
  return parse_chip(read_file(path, kMaxCoreFileBytes), path, open);
}

} // namespace monet

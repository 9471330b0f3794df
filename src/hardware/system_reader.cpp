// One system file and the core files it names -> Chip.
#include "hardware/core_reader.hpp"

#include "monet/base/files.hpp"
#include "monet/base/text.hpp"
#include "monet/hardware/read_hardware.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <limits>
#include <map>

namespace monet {

namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMaxCores = 4096;
constexpr std::size_t kMaxCoreFileBytes = std::size_t{1} << 24;

/// What the connectivity of a chip is read with.
struct LinkDefaults {
  std::int64_t bandwidth = 0;
  double energy_per_cycle = 0;
};

std::optional<std::size_t> parse_index(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t'))
    text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t'))
    text.remove_suffix(1);
  std::size_t value = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || stop != text.data() + text.size() || text.empty())
    return std::nullopt;
  return value;
}

/// Core ids as "0, 1, 2" or [0, 1, 2]; each must exist and appear once.
std::vector<CoreId> parse_ids(const YamlNode& node, std::size_t cores, ProblemList& problems) {
  std::vector<std::string> parts;
  if (node.kind == YamlNode::Kind::scalar) {
    std::string_view rest = node.scalar;
    for (std::size_t comma = rest.find(','); comma != std::string_view::npos;
         comma = rest.find(',')) {
      parts.emplace_back(rest.substr(0, comma));
      rest.remove_prefix(comma + 1);
    }
    parts.emplace_back(rest);
  } else {
    parts = as_strings(node, problems);
  }
  std::vector<CoreId> ids;
  for (const std::string& part : parts) {
    const auto index = parse_index(part);
    if (!index || *index >= cores) {
      problems.add(node.where,
                   fmt::format("'{}' is no core: ids are 0 to {}", part.substr(0, 20), cores - 1));
      return {};
    }
    if (std::find(ids.begin(), ids.end(), CoreId(*index)) != ids.end()) {
      problems.add(node.where, fmt::format("core {} is named twice", *index));
      return {};
    }
    ids.emplace_back(*index);
  }
  if (ids.size() < 2)
    problems.add(node.where, "expected at least two cores, like '0, 1'");
  return ids;
}

std::string core_label(const Chip& chip, CoreId core) {
  return core == chip.offchip ? "dram" : fmt::format("{}", core.index());
}

/// More than two cores, or `bus`: one bus. Two cores: one wire each way, as in Stream.
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

/// {type: link|bus, cores: [0, 1], bandwidth: 32, unit_energy_cost: 0}
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
    link.cores = parse_ids(*cores, chip.cores.size(), problems);
  link.bandwidth_bits_per_cycle = map.has("bandwidth") || defaults.bandwidth == 0
                                      ? map.require_integer("bandwidth")
                                      : defaults.bandwidth;
  link.energy_pj_per_cycle = map.number_or("unit_energy_cost", defaults.energy_per_cycle);
  link.energy_pj_per_bit = map.number_or("energy_pj_per_bit", 0);
  if (map.has("bandwidth") && link.bandwidth_bits_per_cycle < 1) {
    problems.add(map.find("bandwidth")->where, "'bandwidth' must be at least 1 bit per cycle");
  }
  if (link.energy_pj_per_cycle < 0 || link.energy_pj_per_bit < 0) {
    problems.add(node.where, "a link's energy must not be negative");
  }
  map.finish();
  if (link.cores.size() >= 2)
    add_link(std::move(link), type == "bus", chip);
}

void read_links(const YamlNode& node, const LinkDefaults& defaults, Chip& chip,
                ProblemList& problems) {
  if (node.kind == YamlNode::Kind::null)
    return;
  if (node.kind != YamlNode::Kind::sequence) {
    problems.add(node.where, "expected a sequence of links");
    return;
  }
  for (const YamlNode& item : node.items) {
    if (item.kind == YamlNode::Kind::map) {
      read_link_map(item, defaults, chip, problems);
      continue;
    }
    Link link;
    link.cores = parse_ids(item, chip.cores.size(), problems);
    link.bandwidth_bits_per_cycle = defaults.bandwidth;
    link.energy_pj_per_cycle = defaults.energy_per_cycle;
    if (defaults.bandwidth == 0)
      problems.add(item.where, "this link needs the file's 'bandwidth'");
    if (link.cores.size() >= 2)
      add_link(std::move(link), false, chip);
  }
}

/// Unless the file joins the off-chip memory itself, every core reaches it in one hop: over one
/// link with the bandwidth of its read-write ports, or over one link each way when it has separate
/// ports.
void add_offchip_links(Chip& chip) {
  if (!chip.offchip || chip.compute_cores() == 0)
    return;
  for (const Link& link : chip.links) {
    if (std::find(link.cores.begin(), link.cores.end(), *chip.offchip) != link.cores.end())
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

Core core_from_file(const YamlNode& name, bool offchip, const FileOpener& open,
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
    const FileText file = open(*text, name.where);
    core = parse_core_node(parse_yaml(file.text, file.path), problems, offchip);
  } catch (const InputError& error) {
    for (const InputProblem& problem : error.problems())
      problems.add(problem.where, problem.what, problem.hint);
  }
  seen.emplace(key, core);
  return core;
}

void read_cores(const YamlNode& node, const FileOpener& open, std::map<std::string, Core>& seen,
                Chip& chip, ProblemList& problems) {
  if (node.kind != YamlNode::Kind::map || node.entries.empty() || node.entries.size() > kMaxCores) {
    problems.add(node.where, fmt::format("expected a map of 1 to {} cores, id: file", kMaxCores));
    return;
  }
  std::vector<const YamlNode::Entry*> by_id(node.entries.size());
  for (const auto& entry : node.entries) {
    const auto id = parse_index(entry.key);
    if (!id || *id >= by_id.size() || by_id[*id] != nullptr) {
      problems.add(entry.key_where, fmt::format("core ids must be 0 to {}, each once; found '{}'",
                                                by_id.size() - 1, entry.key.substr(0, 20)));
      return;
    }
    by_id[*id] = &entry;
  }
  for (const auto* entry : by_id)
    chip.cores.push_back(core_from_file(entry->value, false, open, seen, problems));
}

void read_sharing(const YamlNode& node, Chip& chip, ProblemList& problems) {
  if (node.kind == YamlNode::Kind::null)
    return;
  if (node.kind != YamlNode::Kind::sequence) {
    problems.add(node.where, "expected a sequence of groups like '0, 1'");
    return;
  }
  for (const YamlNode& item : node.items) {
    const std::vector<CoreId> group = parse_ids(item, chip.cores.size(), problems);
    if (group.size() < 2)
      continue;
    const auto& first = chip.cores[group[0].index()].memories;
    for (const CoreId id : group) {
      const auto& memories = chip.cores[id.index()].memories;
      if (first.empty() || memories.empty() || memories.back().size == first.back().size)
        continue;
      problems.add(
          item.where,
          fmt::format("cores {} and {} cannot share a memory: their outermost ones differ in size",
                      group[0].index(), id.index()));
    }
    chip.shared_memory.push_back(group);
  }
}

/// The off-chip core: a file (`offchip_core`) or one of `cores` (`offchip_core_id`); it becomes the
/// last core.
void place_offchip(YamlMap& map, const FileOpener& open, std::map<std::string, Core>& seen,
                   Chip& chip, ProblemList& problems) {
  if (const YamlNode* file = map.find("offchip_core");
      file != nullptr && file->kind != YamlNode::Kind::null) {
    chip.cores.push_back(core_from_file(*file, true, open, seen, problems));
    chip.offchip = CoreId(chip.cores.size() - 1);
  } else if (const YamlNode* id = map.find("offchip_core_id")) {
    const auto value = as_integer(*id, problems);
    if (!value)
      return;
    if (*value + 1 != static_cast<std::int64_t>(chip.cores.size())) {
      problems.add(id->where, "the off-chip core must be the one with the highest id");
      return;
    }
    chip.offchip = CoreId(chip.cores.size() - 1);
    chip.cores.back().kind = CoreKind::offchip;
  }
}

void require_operand_memories(const Chip& chip, const YamlNode& root, ProblemList& problems) {
  for (std::size_t i = 0; i < chip.cores.size(); ++i) {
    const Core& core = chip.cores[i];
    if (core.memories.empty())
      continue; // reported already
    for (const auto& [operand, name] :
         {std::pair{MemoryOperand::I1, "I1"}, std::pair{MemoryOperand::O, "O"}}) {
      if (core.top(operand) != nullptr)
        continue;
      problems.add({core.origin.empty() ? root.where.origin : core.origin},
                   fmt::format("core '{}' has no memory for operand {}", core.name, name));
    }
  }
}

bool is_system_file(const YamlNode& root) {
  return std::any_of(root.entries.begin(), root.entries.end(),
                     [](const auto& entry) { return entry.key == "cores"; });
}

double frequency_of(YamlMap& map, ProblemList& problems) {
  const YamlNode* node = map.find("frequency_hz");
  if (node == nullptr)
    return 0;
  const double value = as_number(*node, problems).value_or(0);
  if (value <= 0)
    problems.add(node->where, "'frequency_hz' must be more than 0");
  return value;
}

/// A core file alone: the outermost memory of all operands called dram... or offchip... moves
/// off-chip.
Chip chip_of_one_core(const YamlNode& root, ProblemList& problems) {
  Chip chip;
  Core core = parse_core_node(root, problems, false);
  problems.throw_if_any();
  chip.name = core.name;
  YamlMap map(root, problems, YamlMap::Duplicates::last_wins);
  chip.frequency_hz = frequency_of(map, problems);
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

Chip chip_of_system(const YamlNode& root, const FileOpener& open, ProblemList& problems) {
  Chip chip;
  YamlMap map(root, problems);
  chip.name = map.require_string("name");
  chip.frequency_hz = frequency_of(map, problems);
  map.ignore("core_coordinates");
  std::map<std::string, Core> seen;
  if (const YamlNode* cores = map.require("cores"))
    read_cores(*cores, open, seen, chip, problems);
  place_offchip(map, open, seen, chip, problems);
  LinkDefaults defaults;
  if (const YamlNode* bandwidth = map.find("bandwidth")) {
    defaults.bandwidth = as_integer(*bandwidth, problems).value_or(1);
    if (defaults.bandwidth < 1) {
      problems.add(bandwidth->where, "'bandwidth' must be at least 1 bit per cycle");
      defaults.bandwidth = 1;
    }
  }
  defaults.energy_per_cycle = map.number_or("unit_energy_cost", 0);
  if (const YamlNode* links = map.find("core_connectivity");
      links != nullptr && !chip.cores.empty()) {
    read_links(*links, defaults, chip, problems);
  }
  if (const YamlNode* sharing = map.find("core_memory_sharing");
      sharing != nullptr && !chip.cores.empty()) {
    read_sharing(*sharing, chip, problems);
  }
  map.finish();
  return chip;
}

} // namespace

Chip parse_chip(std::string_view text, const std::string& origin, const FileOpener& open) {
  const YamlNode root = parse_yaml(text, origin);
  ProblemList problems;
  Chip chip = is_system_file(root) ? chip_of_system(root, open, problems)
                                   : chip_of_one_core(root, problems);
  chip.origin = origin;
  if (problems.empty())
    require_operand_memories(chip, root, problems);
  problems.throw_if_any();
  add_offchip_links(chip);
  make_routes(chip);
  return chip;
}

Chip read_chip(const std::string& path) {
  const FileOpener open = [&path](const std::string& name, const SourceLoc& where) {
    const fs::path folder = fs::path(path).parent_path();
    const fs::path file = fs::path(name).filename();
    std::error_code ignored;
    std::vector<fs::path> candidates{folder / "cores" / file, folder / file,
                                     folder.parent_path() / "cores" / file};
    if (file != fs::path(name))
      candidates.insert(candidates.begin(), folder / name);
    for (const fs::path& candidate : candidates) {
      if (!file.empty() && fs::is_regular_file(candidate, ignored)) {
        return FileText{candidate.lexically_normal().string(),
                        read_file(candidate.string(), kMaxCoreFileBytes)};
      }
    }
    throw InputError(
        where,
        fmt::format("core file '{}' is neither beside this file nor in its folder 'cores'", name));
  };
  return parse_chip(read_file(path, kMaxCoreFileBytes), path, open);
}

} // namespace monet

// Reads `core_memory_sharing` and `memory_aliases` of a system file. system_reader.cpp calls it.
#include "hardware/sharing_reader.hpp"

#include "base/shared/checked.hpp"
#include "base/shared/text.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <set>
#include <string>
#include <utility>

namespace monet {

std::vector<CoreId> core_ids(const YamlNode& node, std::size_t cores, std::size_t least,
                             ProblemList& problems) {
  std::vector<std::string> parts;
  if (node.kind == YamlNode::Kind::scalar) {
    for (const std::string_view part :
         split(node.scalar, ',', std::numeric_limits<std::size_t>::max()))
      parts.emplace_back(trimmed(part));
  } else {
    parts = as_strings(node, problems);
  }
  std::vector<CoreId> ids;
  for (const std::string& part : parts) {
    const auto index = number_in<std::size_t>(part);
    if (!index || *index >= cores) {
      problems.add(node.where, fmt::format("'{}' is not a core: ids are 0 to {}",
                                           part.substr(0, 20), cores - 1));
      return {};
    }
    if (std::ranges::find(ids, CoreId(*index)) != ids.end()) {
      problems.add(node.where, fmt::format("core {} is named twice", *index));
      return {};
    }
    ids.emplace_back(*index);
  }
  if (ids.size() < least)
    problems.add(node.where, "expected at least two cores, like '0, 1'");
  return ids;
}

void read_sharing(const YamlNode& node, Chip& chip, ProblemList& problems) {
  if (node.kind == YamlNode::Kind::null)
    return;
  if (node.kind != YamlNode::Kind::sequence) {
    problems.add(node.where, "expected a list of groups like '0, 1'");
    return;
  }
  for (const YamlNode& item : node.items) {
    std::vector<CoreId> group = core_ids(item, chip.cores.size(), 2, problems);
    if (group.size() >= 2)
      chip.shared_memory.push_back(std::move(group));
  }
}

namespace {

/// Finds the memory named by "0.sram": a core and one of its memories.
std::optional<MemoryPlace> memory_named(const YamlNode& node, const Chip& chip,
                                        ProblemList& problems) {
  // Unquoted, "0.1" (core 0, memory 1) parses as a number: use the text as written.
  const std::string& text = node.scalar;
  const auto dot = text.find('.');
  const auto core = number_in<std::size_t>(std::string_view(text).substr(0, dot));
  if (node.kind != YamlNode::Kind::scalar || dot == std::string::npos || !core) {
    problems.add(node.where, "expected a core and its memory, like '0.sram'");
    return std::nullopt;
  }
  if (*core >= chip.cores.size()) {
    problems.add(node.where,
                 fmt::format("'{}' is not a core: ids are 0 to {}", *core, chip.cores.size() - 1));
    return std::nullopt;
  }
  const std::string name = text.substr(dot + 1);
  const std::vector<Memory>& memories = chip.cores[*core].memories;
  const auto found = std::ranges::find(memories, name, &Memory::name);
  if (found != memories.end())
    return MemoryPlace{CoreId(*core), static_cast<std::size_t>(found - memories.begin())};
  if (!memories.empty()) // otherwise reported already
    problems.add(node.where, fmt::format("core {} has no memory '{}'", *core, name.substr(0, 40)),
                 nearest_name_hint(name, names_of(memories)));
  return std::nullopt;
}

/// Whether two entries can be one memory: equal sizes, and at most one memory per core.
bool may_be_one(const std::vector<MemoryPlace>& places, MemoryPlace added, const Chip& chip,
                const SourceLoc& where, ProblemList& problems) {
  if (added.core == chip.offchip) {
    problems.add(where, "the off-chip memory does not belong to a core");
    return false;
  }
  if (std::ranges::find(places, added.core, &MemoryPlace::core) != places.end()) {
    problems.add(where, fmt::format("core {} is named twice", added.core.index()));
    return false;
  }
  if (places.empty())
    return true;
  const auto bits = [&](MemoryPlace place) {
    const Core& core = chip.cores[place.core.index()];
    const Memory& memory = core.memories[place.memory];
    return checked_multiply(memory.size.value, instances(core, memory));
  };
  if (bits(places.front()) == bits(added))
    return true;
  problems.add(where, fmt::format("memories of {} and {} bits cannot be the same",
                                  bits(places.front()), bits(added)));
  return false;
}

} // namespace

void read_aliases(const YamlNode& node, Chip& chip, ProblemList& problems) {
  if (node.kind == YamlNode::Kind::null)
    return;
  if (node.kind != YamlNode::Kind::sequence) {
    problems.add(node.where,
                 "expected a list of memories that are the same, like [0.sram, 1.sram]");
    return;
  }
  for (const YamlNode& item : node.items) {
    if (item.kind != YamlNode::Kind::sequence || item.items.size() < 2) {
      problems.add(item.where, "expected at least two memories, like [0.sram, 1.sram]");
      continue;
    }
    std::vector<MemoryPlace> places;
    std::vector<CoreId> cores;
    for (const YamlNode& name : item.items) {
      const auto place = memory_named(name, chip, problems);
      if (!place || !may_be_one(places, *place, chip, name.where, problems))
        continue;
      places.push_back(*place);
      cores.push_back(place->core);
    }
    if (places.size() < 2)
      continue; // reported already
    chip.memory_aliases.push_back(std::move(places));
    chip.shared_memory.push_back(std::move(cores));
  }
}

namespace {

/// Merges groups with a common member, in the order of their first members.
template <class T, class Key>
std::vector<std::vector<T>> joined(const std::vector<std::vector<T>>& groups, Key key) {
  std::vector<std::size_t> root(groups.size());
  std::iota(root.begin(), root.end(), std::size_t{0});
  const auto root_of = [&](std::size_t g) {
    while (root[g] != g)
      g = root[g] = root[root[g]];
    return g;
  };
  std::map<decltype(key(groups[0][0])), std::size_t> first;
  for (std::size_t g = 0; g < groups.size(); ++g) {
    for (const T& member : groups[g]) {
      const std::size_t other = first.emplace(key(member), g).first->second;
      const auto [low, high] = std::minmax({root_of(other), root_of(g)});
      root[high] = low;
    }
  }
  std::map<std::size_t, std::vector<T>> made;
  for (std::size_t g = 0; g < groups.size(); ++g) {
    for (const T& member : groups[g]) {
      if (first.erase(key(member)) > 0)
        made[root_of(g)].push_back(member);
    }
  }
  std::vector<std::vector<T>> result;
  for (auto& [at, members] : made)
    result.push_back(std::move(members));
  return result;
}

} // namespace

void join_groups(Chip& chip, const YamlNode* aliases, ProblemList& problems) {
  chip.shared_memory = joined(chip.shared_memory, [](CoreId core) { return core; });
  chip.memory_aliases = joined(chip.memory_aliases, [](const MemoryPlace& place) {
    return std::pair(place.core, place.memory);
  });
  for (const std::vector<MemoryPlace>& one : chip.memory_aliases) {
    std::set<CoreId> cores;
    for (const MemoryPlace& place : one) {
      if (!cores.insert(place.core).second)
        problems.add(aliases->where, fmt::format("overlapping lists merge two memories of core {}",
                                                 place.core.index()));
    }
  }
}

void require_common_memories(const YamlNode* sharing,
                             const std::vector<std::vector<CoreId>>& groups, const Chip& chip,
                             ProblemList& problems) {
  if (sharing == nullptr)
    return;
  for (std::size_t g = 0; g < sharing->items.size(); ++g) {
    const std::vector<CoreId>& group = groups.at(g);
    const auto shares = [&](CoreId core, CoreId other) {
      const std::size_t own = chip.cores[core.index()].memories.size();
      const std::size_t others = chip.cores[other.index()].memories.size();
      for (std::size_t i = 0; i < own; ++i) {
        for (std::size_t k = 0; k < others; ++k) {
          if (chip.place_of({core, i}) == chip.place_of({other, k}))
            return true;
        }
      }
      return false;
    };
    for (const CoreId core : group) {
      if (core == group.front() || shares(core, group.front()))
        continue;
      problems.add(sharing->items[g].where,
                   fmt::format("cores {} and {} share no memory: no memory of one core has the "
                               "name and size of a memory of the other",
                               group.front().index(), core.index()),
                   "list in memory_aliases which are the same");
    }
  }
}

} // namespace monet

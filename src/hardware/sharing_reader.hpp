// Readers of the core and memory groups of a system file.
#pragma once

#include "monet/base/yaml.hpp"
#include "monet/hardware/chip.hpp"

#include <vector>

namespace monet {

/// Core ids as "0, 1, 2" or [0, 1, 2]; each must exist and appear once.
std::vector<CoreId> core_ids(const YamlNode& node, std::size_t cores, std::size_t least,
                             ProblemList& problems);

/// Reads `core_memory_sharing`: groups of cores.
void read_sharing(const YamlNode& node, Chip& chip, ProblemList& problems);

/// Reads `memory_aliases`: lists of entries "core.memory" that denote one memory.
void read_aliases(const YamlNode& node, Chip& chip, ProblemList& problems);

/// Reports every core of a group of `core_memory_sharing` that has no memory in common with another
/// core of the group. These groups come first in `groups`.
void require_common_memories(const YamlNode* sharing,
                             const std::vector<std::vector<CoreId>>& groups, const Chip& chip,
                             ProblemList& problems);

/// Merges overlapping groups, so that no core and no memory is in two. Reports a problem if that
/// makes two memories of one core the same.
void join_groups(Chip& chip, const YamlNode* aliases, ProblemList& problems);

} // namespace monet

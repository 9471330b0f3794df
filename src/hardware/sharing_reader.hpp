// Which cores and memories a system file names together.
#pragma once

#include "monet/base/yaml.hpp"
#include "monet/hardware/chip.hpp"

#include <vector>

namespace monet {

/// Core ids as "0, 1, 2" or [0, 1, 2]; each must exist and appear once.
std::vector<CoreId> core_ids(const YamlNode& node, std::size_t cores, std::size_t least,
                             ProblemList& problems);

/// `core_memory_sharing`: groups of cores.
void read_sharing(const YamlNode& node, Chip& chip, ProblemList& problems);

/// `memory_aliases`: lists of memories that are one, each as "core.memory".
void read_aliases(const YamlNode& node, Chip& chip, ProblemList& problems);

/// A problem for each core of a group of `core_memory_sharing`, the first of `groups`, that has no
/// memory in common with another one of it.
void require_common_memories(const YamlNode* sharing,
                             const std::vector<std::vector<CoreId>>& groups, const Chip& chip,
                             ProblemList& problems);

/// Afterwards no core and no memory is in two groups: those that meet are one. A problem where that
/// makes two memories of a core one.
void join_groups(Chip& chip, const YamlNode* aliases, ProblemList& problems);

} // namespace monet

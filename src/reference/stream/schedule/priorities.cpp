#include "reference/stream/schedule/priorities.hpp"

#include <algorithm>
#include <tuple>

namespace monet::stream {

namespace {

struct Use {
  std::uint32_t tensor = 0;
  std::uint32_t memory = 0;
  std::int64_t count = 0;
  bool adds = false; ///< a reader; else the count is set
};

std::vector<Use> uses_of(const Workload& workload, const Fabric& fabric) {
  std::vector<Use> uses;
  uses.reserve(workload.edges.size() + 2 * workload.tiles.size());
  for (std::uint32_t t = 0; t < workload.tiles.size(); ++t) {
    const Tile& tile = workload.tiles[t];
    for (const Operand operand : workload.layers[tile.layer].constants) {
      const std::uint32_t tensor = tile.tensors[static_cast<std::size_t>(operand)];
      const std::uint32_t memory = fabric.top(tile.core, memory_of(operand));
      uses.push_back({tensor, memory, workload.tensors[tensor].base_priority, false});
    }
    for (const Edge& edge : workload.edges_into(t)) {
      if (!edge.carries_data())
        continue;
      uses.push_back({workload.tiles[edge.from].tensors[static_cast<std::size_t>(Operand::O)],
                      fabric.top(tile.core, memory_of(edge.operand)), 1, true});
    }
  }
  std::ranges::stable_sort(uses, [](const Use& a, const Use& b) {
    return std::tie(a.tensor, a.memory) < std::tie(b.tensor, b.memory);
  });
  return uses;
}

} // namespace

Priorities::Priorities(const Workload& workload, const Fabric& fabric)
    : first_(workload.tensors.size() + 1, 0), totals_(workload.tensors.size(), 0) {
  const std::vector<Use> uses = uses_of(workload, fabric);
  std::uint32_t tensor = 0;
  for (const Use& use : uses) {
    for (; tensor < use.tensor; ++tensor)
      first_[tensor + 1] = static_cast<std::uint32_t>(counts_.size());
    const bool known = counts_.size() > first_[tensor] && counts_.back().memory == use.memory;
    if (!known)
      counts_.push_back({use.memory, 0});
    counts_.back().left = use.adds ? counts_.back().left + use.count : use.count;
  }
  for (; tensor < workload.tensors.size(); ++tensor)
    first_[tensor + 1] = static_cast<std::uint32_t>(counts_.size());
  for (std::uint32_t t = 0; t < workload.tensors.size(); ++t) {
    for (const Count& count : of(t))
      totals_[t] += count.left;
  }
}

void Priorities::use(std::uint32_t tensor, std::uint32_t memory) {
  for (std::uint32_t i = first_[tensor]; i < first_[tensor + 1]; ++i) {
    if (counts_[i].memory != memory)
      continue;
    --counts_[i].left;
    --totals_[tensor];
    return;
  }
}

} // namespace monet::stream

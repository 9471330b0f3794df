// Tracks the use and contents of memories and the remaining uses of tensors for the reference
// scheduler (coala.cpp, transfers.cpp).
#include "reference/stream/schedule/memory.hpp"

#include <algorithm>
#include <tuple>

namespace monet::stream {

namespace {

/// Index of the first time that is at or after `time` (with `after`: strictly after).
std::size_t first_index(const std::vector<std::int64_t>& times, double time, bool after) {
  const auto at = std::partition_point(times.begin(), times.end(), [&](std::int64_t t) {
    const auto known = static_cast<double>(t);
    return after ? known <= time : known < time;
  });
  return static_cast<std::size_t>(at - times.begin());
}

struct Use {
  std::uint32_t tensor = 0;
  std::uint32_t memory = 0;
  std::int64_t count = 0;
  bool adds = false; ///< true: a reader, adds to the count; false: sets it
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

double Usage::room_from(double when, std::int64_t bits, std::int64_t capacity) const {
  for (;;) {
    const std::size_t next = first_index(times_, when, true);
    if (next == times_.size())
      return when; // unchecked: the reference evicts later if necessary
    const std::size_t from = next == 0 ? 0 : next - 1;
    std::size_t fullest = from;
    for (std::size_t i = from; i < bits_.size(); ++i) {
      if (bits_[i] >= bits_[fullest])
        fullest = i;
    }
    if (bits_[fullest] + bits <= capacity)
      return when;
    if (fullest + 1 == bits_.size())
      return static_cast<double>(times_[fullest]);
    when = static_cast<double>(times_[fullest + 1]);
  }
}

std::int64_t Usage::at(double time) const {
  const std::size_t next = first_index(times_, time, true);
  return bits_[next == 0 ? 0 : next - 1];
}

std::optional<std::int64_t> Usage::max_from(double time) const {
  const std::size_t first = first_index(times_, time, false);
  if (first == bits_.size())
    return std::nullopt;
  return *std::max_element(bits_.begin() + static_cast<std::ptrdiff_t>(first), bits_.end());
}

void Usage::add(double time, std::int64_t bits) {
  const std::size_t index = first_index(times_, time, false);
  const bool known = index < times_.size() && static_cast<double>(times_[index]) == time;
  for (std::size_t i = index; i < bits_.size(); ++i)
    bits_[i] += bits;
  if (known)
    return;
  const auto offset = static_cast<std::ptrdiff_t>(index);
  const std::int64_t before = index == 0 ? 0 : bits_[index - 1];
  constexpr double kLatest = 9e18; // beyond any realistic time; keeps the cast defined
  times_.insert(times_.begin() + offset, static_cast<std::int64_t>(std::min(time, kLatest)));
  bits_.insert(bits_.begin() + offset, before + bits);
}

std::int64_t Usage::peak() const {
  return *std::ranges::max_element(bits_);
}

const Storage::MemoryContent* Storage::find(std::uint32_t content, std::uint32_t memory) const {
  for (std::uint32_t h = holdings_of_[content]; h != kNil; h = pool_[h].next_of_content) {
    if (pool_[h].memory == memory)
      return &pool_[h];
  }
  return nullptr;
}

const Storage::MemoryContent* Storage::oldest(std::uint32_t content) const {
  const MemoryContent* best = nullptr;
  for (std::uint32_t h = holdings_of_[content]; h != kNil; h = pool_[h].next_of_content) {
    const MemoryContent& holding = pool_[h];
    if (best == nullptr || holding.available < best->available ||
        (holding.available == best->available && holding.memory < best->memory))
      best = &holding;
  }
  return best;
}

void Storage::insert(const MemoryContent& holding) {
  std::uint32_t index = static_cast<std::uint32_t>(pool_.size());
  if (free_.empty()) {
    pool_.push_back(holding);
  } else {
    index = free_.back();
    free_.pop_back();
    pool_[index] = holding;
  }
  MemoryContent& placed = pool_[index];
  placed.next_of_content = holdings_of_[placed.content];
  holdings_of_[placed.content] = index;
  placed.next_in_memory = kNil;
  placed.previous_in_memory = last_[placed.memory];
  (last_[placed.memory] == kNil ? first_[placed.memory]
                                : pool_[last_[placed.memory]].next_in_memory) = index;
  last_[placed.memory] = index;
}

void Storage::erase(std::uint32_t content, std::uint32_t memory) {
  std::uint32_t* link = &holdings_of_[content];
  while (*link != kNil && pool_[*link].memory != memory)
    link = &pool_[*link].next_of_content;
  if (*link == kNil)
    return;
  const std::uint32_t index = *link;
  const MemoryContent& gone = pool_[index];
  *link = gone.next_of_content;
  (gone.previous_in_memory == kNil ? first_[memory]
                                   : pool_[gone.previous_in_memory].next_in_memory) =
      gone.next_in_memory;
  (gone.next_in_memory == kNil ? last_[memory] : pool_[gone.next_in_memory].previous_in_memory) =
      gone.previous_in_memory;
  free_.push_back(index);
}

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

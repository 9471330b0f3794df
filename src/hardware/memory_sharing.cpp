// Which memories of several cores are one.
#include "monet/base/checked.hpp"
#include "monet/hardware/chip.hpp"

#include <algorithm>

namespace monet {

namespace {

/// Operands and ports are those that a core has of the memory.
bool equal_memories(const Core& core, const Memory& memory, const Core& other_core,
                    const Memory& other) {
  return memory.name == other.name && memory.size == other.size &&
         instances(core, memory) == instances(other_core, other);
}

bool aliased(const Chip& chip, CoreId core) {
  return std::ranges::any_of(chip.memory_aliases, [core](const auto& one) {
    return std::ranges::find(one, core, &MemoryPlace::core) != one.end();
  });
}

bool earlier(const MemoryPlace& a, const MemoryPlace& b) {
  return std::pair(a.core, a.memory) < std::pair(b.core, b.memory);
}

} // namespace

CoreId Chip::memory_of(CoreId core) const {
  CoreId first = core;
  for (const auto& group : shared_memory) {
    if (std::find(group.begin(), group.end(), core) != group.end())
      first = std::min(first, *std::min_element(group.begin(), group.end()));
  }
  return first == core ? core : memory_of(first); // groups may overlap
}

MemoryPlace Chip::place_of(MemoryPlace place) const {
  const CoreId pool = memory_of(place.core);
  if (aliased(*this, place.core)) {
    MemoryPlace first = place;
    for (const auto& one : memory_aliases) {
      if (std::ranges::find(one, place) != one.end())
        first = std::min(first, *std::ranges::min_element(one, earlier), earlier);
    }
    return first == place ? place : place_of(first); // aliases may overlap
  }
  const Core& core = cores.at(place.core.index());
  const Memory& memory = core.memories.at(place.memory);
  for (std::size_t c = pool.index(); c < place.core.index(); ++c) {
    for (std::size_t m = 0; m < cores[c].memories.size(); ++m) {
      if (equal_memories(cores[c], cores[c].memories[m], core, memory) &&
          memory_of(CoreId(c)) == pool && !aliased(*this, CoreId(c)))
        return {CoreId(c), m};
    }
  }
  return place;
}

std::int64_t Chip::pool_bits(CoreId id) const {
  const CoreId pool = memory_of(id);
  std::vector<MemoryPlace> counted;
  std::int64_t bits = 0;
  for (std::size_t c = pool.index(); c < cores.size(); ++c) {
    if (memory_of(CoreId(c)) != pool)
      continue;
    const Core& core = cores[c];
    for (std::size_t m = 0; m < core.memories.size(); ++m) {
      const Memory& memory = core.memories[m];
      const bool outermost = std::ranges::any_of(
          memory.operands, [&](MemoryOperand operand) { return core.top(operand) == &memory; });
      const MemoryPlace place = place_of({CoreId(c), m});
      if (!outermost || std::ranges::find(counted, place) != counted.end())
        continue;
      counted.push_back(place);
      bits = checked_add(bits, checked_multiply(memory.size.value, instances(core, memory)));
    }
  }
  return bits;
}

} // namespace monet

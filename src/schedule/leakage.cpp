// What memories lose while a step lasts.
#include "schedule/event_scheduler.hpp"

#include <algorithm>

namespace monet {

double leakage_per_cycle(const Chip& chip, CoreId id) {
  const Core& core = chip.cores[id.index()];
  // A memory that several cores share leaks once, on the first of them.
  const bool shares =
      std::any_of(chip.shared_memory.begin(), chip.shared_memory.end(), [&](const auto& group) {
        return std::find(group.begin(), group.end(), id) != group.end() &&
               *std::min_element(group.begin(), group.end()) != id;
      });
  double per_cycle = 0;
  for (std::size_t m = 0; m < core.memories.size() - (shares ? 1 : 0); ++m) {
    const Memory& memory = core.memories[m];
    per_cycle += memory.leakage_pj_per_cycle * static_cast<double>(instances(core, memory));
  }
  return per_cycle;
}

void add_leakage(const Chip& chip, Timeline& timeline) {
  timeline.leakage.assign(chip.cores.size(), {});
  for (std::size_t c = 0; c < chip.cores.size(); ++c)
    timeline.leakage[c] = Energy::from(
        {leakage_per_cycle(chip, CoreId(c)) * static_cast<double>(timeline.makespan.value)});
}

} // namespace monet

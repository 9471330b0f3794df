// What memories lose while a step lasts.
#include "schedule/event_scheduler.hpp"

#include <algorithm>

namespace monet {

void add_leakage(const Chip& chip, Timeline& timeline) {
  timeline.leakage.assign(chip.cores.size(), {});
  for (std::size_t c = 0; c < chip.cores.size(); ++c) {
    const Core& core = chip.cores[c];
    // A memory that several cores share leaks once, on the first of them.
    const bool shares =
        std::any_of(chip.shared_memory.begin(), chip.shared_memory.end(), [&](const auto& group) {
          return std::find(group.begin(), group.end(), CoreId(c)) != group.end() &&
                 *std::min_element(group.begin(), group.end()) != CoreId(c);
        });
    double per_cycle = 0;
    for (std::size_t m = 0; m < core.memories.size() - (shares ? 1 : 0); ++m) {
      const Memory& memory = core.memories[m];
      per_cycle += memory.leakage_pj_per_cycle * static_cast<double>(instances(core, memory));
    }
    timeline.leakage[c] = Energy::from({per_cycle * static_cast<double>(timeline.makespan.value)});
  }
}

} // namespace monet

#include "monet/schedule/timeline.hpp"

#include <algorithm>
#include <array>
#include <tuple>

namespace monet {

std::string_view name_of(TransferKind kind) {
  static constexpr std::array<std::string_view, 4> kNames{"fetch", "stream", "write_back", "spill"};
  return kNames.at(static_cast<std::size_t>(kind));
}

std::vector<MemoryEvent> memory_events(const Timeline& timeline) {
  std::vector<MemoryEvent> events;
  events.reserve(2 * timeline.stays.size());
  for (const Stay& stay : timeline.stays) {
    const Place& place = timeline.place_of(stay);
    events.push_back({stay.start, place.memory, stay.tensor, place.bits});
    if (stay.end != Stay::kKept)
      events.push_back({stay.end, place.memory, stay.tensor, {-place.bits.value}});
  }
  const auto key = [](const MemoryEvent& e) {
    return std::tuple(e.time, e.delta.value > 0, e.memory, e.tensor, e.delta);
  };
  std::ranges::sort(events,
                    [&](const MemoryEvent& a, const MemoryEvent& b) { return key(a) < key(b); });
  return events;
}

EnergySplit energy_of(const Timeline& timeline) {
  EnergySplit split;
  for (const TileRun& run : timeline.runs) {
    const RunCost& cost = timeline.cost_of(run);
    split.compute += cost.compute;
    split.onchip_memory += cost.memory;
  }
  for (const Transfer& transfer : timeline.transfers) {
    const TransferCost& cost = timeline.cost_of(transfer);
    split.links += cost.link_energy;
    split.offchip += cost.offchip_energy;
    split.onchip_memory += cost.onchip_energy;
  }
  for (const Energy& leakage : timeline.leakage)
    split.leakage += leakage;
  return split;
}

} // namespace monet

#include "schedule/check/arrivals.hpp"

#include <iterator>

namespace monet {

Arrivals::Arrivals(const Timeline& timeline, const Chip& chip) {
  for (const Transfer& t : timeline.transfers) {
    const Route& route = timeline.route_of(t);
    const bool kept = t.kind == TransferKind::fetch || t.kind == TransferKind::spill;
    if (!kept || route.to.front() == chip.offchip)
      continue;
    const std::int64_t bits = timeline.bits_of(t).value;
    for (std::size_t i = 0; i < route.to.size(); ++i) {
      auto& steps = bits_[{chip.memory_of(route.to[i]), t.tensor}];
      steps[t.start.value] += bits;
      steps[t.end.value + route.latency_to(i)] -= bits;
    }
  }
  for (auto& [key, steps] : bits_) {
    std::int64_t bits = 0;
    for (auto& [time, change] : steps) {
      bits += change;
      change = bits;
    }
  }
}

std::int64_t Arrivals::on_the_way(CoreId memory, TensorId tensor, std::int64_t cycle) const {
  const auto found = bits_.find({memory, tensor});
  if (found == bits_.end())
    return 0;
  const auto after = found->second.upper_bound(cycle);
  return after == found->second.begin() ? 0 : std::prev(after)->second;
}

} // namespace monet

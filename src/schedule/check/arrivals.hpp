// What is on its way to a memory, from a finished timeline's transfers alone.
#pragma once

#include "monet/hardware/chip.hpp"
#include "monet/schedule/timeline.hpp"

#include <map>
#include <utility>

namespace monet {

class Arrivals {
public:
  Arrivals(const Timeline& timeline, const Chip& chip);

  /// Bits of the tensor that are being sent to the memory (of the core, or of those that share it)
  /// at the cycle, or have been sent and are not there yet. Streams do not count.
  std::int64_t on_the_way(CoreId memory, TensorId tensor, std::int64_t cycle) const;

private:
  /// By time: bits from then on.
  std::map<std::pair<CoreId, TensorId>, std::map<std::int64_t, std::int64_t>> bits_;
};

} // namespace monet

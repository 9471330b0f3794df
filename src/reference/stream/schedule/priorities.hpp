// How often each memory is still going to be asked for a tensor, as the reference scheduler counts.
#pragma once

#include "reference/stream/schedule/fabric.hpp"

#include "monet/reference/stream_tiles.hpp"

#include <cstdint>
#include <span>
#include <vector>

namespace monet::stream {

class Priorities {
public:
  /// A constant counts `base_priority` in every memory whose core uses it (so that one used by
  /// several cores never comes to zero); an output counts its readers per memory.
  Priorities(const Workload& workload, const Fabric& fabric);

  struct Count {
    std::uint32_t memory = 0;
    std::int64_t left = 0;
  };
  std::span<const Count> of(std::uint32_t tensor) const {
    return {counts_.data() + first_[tensor], counts_.data() + first_[tensor + 1]};
  }
  std::int64_t total(std::uint32_t tensor) const { return totals_[tensor]; }
  /// One use less; nothing when the memory has no count.
  void use(std::uint32_t tensor, std::uint32_t memory);

private:
  std::vector<std::uint32_t> first_;
  std::vector<Count> counts_;
  std::vector<std::int64_t> totals_;
};

} // namespace monet::stream

// What the off-chip memory holds: every tensor without a producer from the start, pieces from their
// write on.
#pragma once

#include "schedule/data_items.hpp"
#include "schedule/timeline_writer.hpp"

#include <optional>
#include <vector>

namespace monet {

class OffchipMemory {
public:
  OffchipMemory(const DataItems& data, const Graph& graph);

  /// Cycle from which the piece can be read; 0 for a tensor without producer; none while it is only
  /// on cores.
  std::optional<std::int64_t> stored_at(std::optional<ItemId> piece) const;
  /// The piece arrives between the cycles.
  void store(ItemId piece, std::int64_t start, std::int64_t end);
  /// A transfer reads the piece until `end`.
  void touch(ItemId piece, std::int64_t end);
  /// Nobody reads the piece any more; what the step leaves behind stays.
  void retire(ItemId piece);

  /// Writes down what lay there from when to when. Tensors that share storage take no room.
  /// InfeasibleError when `capacity` is exceeded.
  void finish(CoreId memory, Bits capacity, TimelineWriter& timeline) const;

private:
  struct Stored {
    std::int64_t start = 0;
    std::int64_t end = 0;
    std::int64_t busy_until = 0;
    bool retired = false;
  };
  const DataItems& data_;
  const Graph& graph_;
  std::vector<bool> required_;                ///< per tensor
  std::vector<std::optional<Stored>> stored_; ///< per item
};

} // namespace monet

// Fills the lists of a timeline while tiles are placed; what rows have in common is stored once.
#pragma once

#include "schedule/network.hpp"

#include "monet/schedule/timeline.hpp"

#include <cstdint>
#include <utility>
#include <vector>

namespace monet {

/// Numbers of values by their hash: open addressing, the values themselves are kept elsewhere.
class InternTable {
public:
  /// The number of the value that `equals(number)` recognises, or `next`, which is then its number.
  template <class Equals>
  std::uint32_t find(std::uint64_t hash, std::uint32_t next, Equals equals) {
    if (2 * (count_ + 1) > slots_.size())
      grow();
    for (std::size_t i = hash & (slots_.size() - 1);; i = (i + 1) & (slots_.size() - 1)) {
      Slot& slot = slots_[i];
      if (slot.number == kFree) {
        slot = {hash, next};
        ++count_;
        return next;
      }
      if (slot.hash == hash && equals(slot.number))
        return slot.number;
    }
  }

private:
  static constexpr std::uint32_t kFree = 0xFFFFFFFFU;
  struct Slot {
    std::uint64_t hash = 0;
    std::uint32_t number = kFree;
  };
  void grow();

  std::vector<Slot> slots_; ///< a power of two of them
  std::size_t count_ = 0;
};

class TimelineWriter {
public:
  /// A new row of Timeline::costs; its index.
  std::uint32_t add_cost(RunCost cost);
  void add_run(const TileRun& run) { timeline_.runs.push_back(run); }
  void add_transfer(const TransferRequest& request, const Booking& booking);
  void add_stay(CoreId memory, TensorId tensor, Bits bits, Cycles start, Cycles end);

  /// The lists in their order. Phases and live memory are not filled in.
  Timeline finish(const Network& network);

private:
  Timeline timeline_;
  InternTable transfer_costs_;
  InternTable places_;
};

} // namespace monet

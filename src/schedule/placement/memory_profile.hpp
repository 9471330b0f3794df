// Occupied bits of a memory over time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace monet {

/// Occupied bits as a step function of time. Exact over about the last thousand steps; before them
/// an upper bound, which can only delay the time at which room is found.
///
/// A request without end has its room after the last cycle with too little free. The search for
/// this cycle starts from the end and skips blocks by their maximum.
class MemoryProfile {
public:
  /// Occupies `bits` from `start` on, without end.
  void hold(std::int64_t start, std::int64_t bits) { add(start, bits); }
  /// Frees `bits`, occupied since an earlier cycle, from `end` on.
  void release(std::int64_t end, std::int64_t bits) { add(end, -bits); }
  /// Occupied bits after the last step.
  std::int64_t held() const { return held_; }
  /// First cycle >= 0 from which on at most `limit` bits are occupied. Requires limit >= held().
  std::int64_t below_from(std::int64_t limit) const;

private:
  struct Step {
    std::int64_t time;
    std::int64_t change; ///< of the occupied bits, from `time` on
  };
  static constexpr std::size_t kMaxSteps = 32; ///< per block
  static constexpr std::size_t kMaxBlocks = 64;
  struct Block {
    std::vector<Step> steps; ///< never empty; ascending in time
    std::int64_t change = 0; ///< sum over the steps
    std::int64_t most = 0;   ///< maximum before any of its steps, less the bits after it
    bool stale = false;      ///< change and most are out of date until sum_up()
  };

  void add(std::int64_t time, std::int64_t change);
  void forget();
  std::int64_t search(std::int64_t limit) const;
  static void sum_up(Block& block);

  std::int64_t held_ = 0;
  mutable std::vector<Block> blocks_; ///< stale ones are updated on use
  struct Answer {
    std::int64_t limit = -1; ///< -1: none since the last change
    std::int64_t from = 0;
  };
  mutable Answer last_; ///< the last result of below_from()
};

} // namespace monet

// How much of a memory is taken over time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace monet {

/// A step function of time: what is held from some cycle on, until it is released. Exact over the
/// last thousand steps; before them no less than what is taken, which only makes room come later.
///
/// Who wants room for good has it from the last cycle on at which there was too little: a search
/// from the end, over blocks that know the most that is taken in them.
class MemoryProfile {
public:
  /// Takes bits from `start` on, for ever.
  void hold(std::int64_t start, std::int64_t bits) { add(start, bits); }
  /// Takes no longer what was held from an earlier cycle on.
  void release(std::int64_t end, std::int64_t bits) { add(end, -bits); }
  /// What is taken in the end.
  std::int64_t held() const { return held_; }
  /// First cycle >= 0 from which on no more than `limit` >= held() is taken.
  std::int64_t below_from(std::int64_t limit) const;

private:
  struct Step {
    std::int64_t time;
    std::int64_t change; ///< of what is taken, from `time` on
  };
  static constexpr std::size_t kMaxSteps = 32; ///< of a block
  static constexpr std::size_t kMaxBlocks = 64;
  struct Block {
    std::vector<Step> steps; ///< never empty; ascending in time
    std::int64_t change = 0; ///< sum over the steps
    std::int64_t most = 0;   ///< the most that is taken before one of its steps, less what is after
                             ///< the last of them
    bool stale = false; ///< both are as they were some steps ago: they are summed up when asked
  };

  void add(std::int64_t time, std::int64_t change);
  void forget();
  std::int64_t search(std::int64_t limit) const;
  static void sum_up(Block& block);

  std::int64_t held_ = 0;
  mutable std::vector<Block> blocks_; ///< stale ones are summed up when they are asked
  struct Answer {
    std::int64_t limit = -1; ///< -1: none since the last change
    std::int64_t from = 0;
  };
  mutable Answer last_; ///< of below_from()
};

} // namespace monet

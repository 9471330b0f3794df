// Booked bandwidth of a link, bus or port over time.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

namespace monet {

/// Booked bandwidth as a step function of time that only grows. It is exact: no gap is forgotten.
/// Steps are stored in blocks, and blocks in groups. Each of them has an upper bound on the longest
/// run of sufficiently free steps that begins in it. A search skips blocks and groups whose bound
/// is too low.
class LinkTimeline {
public:
  explicit LinkTimeline(std::int64_t bandwidth = 1);

  /// First time >= `from` >= 0 from which on `share` of the bandwidth is free for `length` > 0
  /// cycles; 0 < share <= bandwidth.
  std::int64_t first_fit(std::int64_t from, std::int64_t length, std::int64_t share);
  bool fits(std::int64_t start, std::int64_t length, std::int64_t share) const {
    Cursor at = find(start);
    return !find_blocked(at, bandwidth_ - share, start + length);
  }
  /// First time >= `start` at which less than `share` is free.
  std::int64_t free_until(std::int64_t start, std::int64_t share) const;
  /// Bandwidth that is not booked at the time.
  std::int64_t free_at(std::int64_t time) const { return bandwidth_ - step(find(time)).used; }
  /// Books `share` during [start, end); it must be free.
  void book(std::int64_t start, std::int64_t end, std::int64_t share);

private:
  /// Booked bandwidth from `time` to the next step. The last step has no end and no booking.
  struct Step {
    std::int64_t time;
    std::int64_t used;
  };
  /// Searches are classed by the share that they request: all, at least half, at least a quarter,
  /// less.
  static constexpr std::size_t kClasses = 4;
  static constexpr std::size_t kMaxSteps = 64;  ///< per block
  static constexpr std::size_t kMaxBlocks = 64; ///< per group
  /// Upper bounds of a block or group: per class, the longest run of sufficiently free steps whose
  /// first step is in it; and the maximum booked bandwidth.
  struct Bounds {
    std::array<std::int64_t, kClasses> longest{};
    std::int64_t max_used = 0;
  };
  struct Block {
    std::vector<Step> steps; ///< never empty
    Bounds bounds;
    std::int64_t begin = 0; ///< time of the first step, which never changes
  };
  struct Group {
    std::vector<Block> blocks; ///< never empty
    Bounds bounds;
  };
  struct Cursor {
    std::size_t group;
    std::size_t block;
    std::size_t step;
  };

  const Step& step(Cursor at) const { return groups_[at.group].blocks[at.block].steps[at.step]; }
  Step& step(Cursor at) { return groups_[at.group].blocks[at.block].steps[at.step]; }
  Block& block(Cursor at) { return groups_[at.group].blocks[at.block]; }

  Cursor find(std::int64_t time) const;
  bool find_in_last_block(std::int64_t time) const;
  static std::size_t find_step(const Block& block, std::int64_t time);
  bool advance(Cursor& at) const;
  bool find_blocked(Cursor& at, std::int64_t limit, std::int64_t end) const;
  void find_run(Cursor& at, std::int64_t limit, std::int64_t length, std::size_t of_class);
  std::int64_t run_length(Cursor at, std::size_t of_class) const;
  void tighten(Cursor at);
  void cut_after(Cursor& at, std::int64_t time);
  bool split_if_full(Cursor at);
  bool is_last(Cursor at) const {
    return at.group + 1 == groups_.size() && at.block + 1 == groups_[at.group].blocks.size() &&
           at.step + 1 == groups_[at.group].blocks[at.block].steps.size();
  }
  void merge_with_previous(Cursor at);
  void note_run(Cursor at);
  static bool same_block(Cursor a, Cursor b) { return a.group == b.group && a.block == b.block; }

  std::int64_t bandwidth_;
  std::array<std::int64_t, kClasses> limits_; ///< maximum booked for a class's smallest share
  std::vector<Group> groups_;
  mutable Cursor last_{0, 0, 0}; ///< the step found last, if it still exists
};

/// First time >= `from` at which `share` is free for `length` cycles on all `wanted` timelines.
std::int64_t first_common_fit(std::vector<LinkTimeline>& timelines,
                              std::span<const std::uint32_t> wanted, std::int64_t from,
                              std::int64_t length, std::int64_t share);

} // namespace monet

// Exact search for an allocation below a given height, by filling the skyline from below.
//
// Time is cut into sections between which no buffer starts or ends. In every section buffers lie on
// top of each other; `floor` is the height up to which a section is settled. In a local valley of
// the skyline (a run of sections of equal floor between higher ones) a section is chosen, and what
// comes next in it is branched on: one of the buffers that fit into the valley, at its floor, or
// nothing there, which wastes space. Any allocation that is pushed down as far as it goes is found
// so, each by one path. What cannot fit is seen early: a section's floor is raised to the lowest
// place that any of its buffers can still have, and floor + sizes still to come must stay below the
// capacity. Ranges of sections that no buffer joins any more are searched separately; failed states
// are remembered.
//
// The ideas of canonical placements, section bounds and decomposition are those of Moffitt,
// "MiniMalloc: A Lightweight Memory Allocator for Hardware-Accelerated Machine Learning", ASPLOS
// 2023.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

namespace monet {

/// One buffer: sections [first, last) and a size in units.
struct SkylineItem {
  std::size_t first = 0;
  std::size_t last = 0;
  std::int64_t size = 0;
};

struct SkylineProblem {
  std::vector<SkylineItem> items;
  std::size_t sections = 0;
  std::int64_t capacity = 0;
};

/// The state of a search: what is placed, and bounds for what is not. Every change can be undone.
class Skyline {
public:
  /// `sorted`: all buffers in the order in which in_section() is to list them.
  Skyline(const SkylineProblem& problem, const std::vector<std::size_t>& sorted);

  /// Places a buffer at its lowest possible offset.
  void place(std::size_t item);
  /// Excludes the space below `floor` in the section for later buffers.
  void raise(std::size_t section, std::int64_t floor);
  /// Draws all conclusions. False if the capacity is exceeded, in the section failed_section().
  bool settle();
  std::size_t failed_section() const { return failed_section_; }

  /// Number of buffers looked at so far: the cost of a search.
  std::int64_t work() const { return work_; }

  /// Number of changes so far; undo(n) takes back all but the first n.
  std::size_t changes() const { return trail_.size(); }
  void undo(std::size_t changes);

  const SkylineItem& item(std::size_t i) const { return items_[i]; }
  bool is_open(std::size_t item) const { return offset_[item] < 0; }
  std::size_t sections() const { return floor_.size(); }
  const std::vector<std::size_t>& in_section(std::size_t section) const {
    return in_section_[section];
  }
  std::int64_t floor(std::size_t section) const { return floor_[section]; }
  /// Buffers of the section that are not placed.
  int open(std::size_t section) const { return open_[section]; }
  /// Space of the section that may stay unused.
  std::int64_t slack(std::size_t section) const {
    return capacity_ - floor_[section] - total_[section];
  }
  /// The lowest offset that is left to a buffer.
  std::int64_t least(std::size_t item) const { return least_[item]; }
  const std::vector<std::int64_t>& offsets() const { return offset_; }

private:
  enum class Undo : std::uint8_t { floor, least, placed };
  struct Change {
    Undo what;
    std::size_t index;
    std::int64_t before;
  };

  void mark(std::size_t item);
  void raise_least(std::size_t item, std::int64_t least);
  bool settle(std::size_t section);
  bool step_up(std::size_t section);

  const std::vector<SkylineItem>& items_;
  std::int64_t capacity_;
  std::vector<std::vector<std::size_t>> in_section_;
  std::vector<std::int64_t> floor_;
  std::vector<std::int64_t> total_; ///< per section: sizes of what is not placed
  std::vector<int> open_;
  std::vector<std::int64_t> least_;
  std::vector<std::int64_t> offset_; ///< -1 = not placed
  std::vector<Change> trail_;
  std::vector<std::size_t> dirty_; ///< sections to draw conclusions from
  std::vector<bool> is_dirty_;
  std::size_t failed_section_ = 0;
  std::int64_t work_ = 0;
  std::vector<std::pair<std::int64_t, std::int64_t>> jobs_; ///< of a section: least offset, size
  std::vector<std::int64_t> sums_;
};

/// Larger than any offset.
inline constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max() / 4;

enum class SkylineResult { found, impossible, gave_up };

struct SkylineAnswer {
  SkylineResult result = SkylineResult::gave_up;
  std::vector<std::int64_t> offsets; ///< per item, when found
  std::int64_t nodes = 0;            ///< placements tried
  std::int64_t work = 0;             ///< buffers looked at
};

/// Orders in which the buffers that fit into a valley are tried.
inline constexpr int kSkylineOrders = 6;

/// Limits of a search: placements tried, buffers looked at.
struct SkylineLimits {
  std::int64_t nodes = 0;
  std::int64_t work = 0;
};

/// Tries orders in turn with growing limits until the answer is known or the limits are reached.
SkylineAnswer search_skyline(const SkylineProblem& problem, SkylineLimits limits);

} // namespace monet

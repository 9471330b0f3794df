#include "schedule/link_timeline.hpp"

#include <algorithm>

namespace monet {

std::int64_t LinkTimeline::first_gap(std::int64_t from, std::int64_t length) const {
  auto next = std::partition_point(busy_.begin(), busy_.end(),
                                   [&](const Interval& busy) { return busy.end <= from; });
  for (; next != busy_.end() && next->begin < from + length; ++next)
    from = std::max(from, next->end);
  return from;
}

void LinkTimeline::occupy(std::int64_t start, std::int64_t end) {
  auto next = std::partition_point(busy_.begin(), busy_.end(),
                                   [&](const Interval& busy) { return busy.end < start; });
  // `next` is the first interval that may touch [start, end) from the left or lies behind it.
  if (next != busy_.end() && next->end == start) {
    next->end = end;
    const auto after = next + 1;
    if (after != busy_.end() && after->begin == end) {
      next->end = after->end;
      busy_.erase(after);
    }
    return;
  }
  if (next != busy_.end() && next->begin == end) {
    next->begin = start;
    return;
  }
  busy_.insert(next, {start, end});
  if (busy_.size() > kMostGaps) {
    // Twice as many as needed go at once, so that the cost per call stays small.
    const std::size_t merged = kMostGaps / 2;
    busy_[merged].begin = busy_.front().begin;
    busy_.erase(busy_.begin(), busy_.begin() + static_cast<std::ptrdiff_t>(merged));
  }
}

std::int64_t first_common_gap(const std::vector<LinkTimeline>& timelines,
                              std::span<const std::size_t> wanted, std::int64_t from,
                              std::int64_t length) {
  for (bool moved = true; moved;) {
    moved = false;
    for (const std::size_t index : wanted) {
      const std::int64_t at = timelines[index].first_gap(from, length);
      moved = moved || at != from;
      from = at;
    }
  }
  return from;
}

} // namespace monet

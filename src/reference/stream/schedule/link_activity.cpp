// Finds free windows of links and books bandwidth. The transfers of the reference scheduler
// (transfers.cpp) call this.
#include "reference/stream/schedule/link_activity.hpp"

#include <algorithm>
#include <limits>

namespace monet::stream {

std::size_t LinkActivity::segment_at(double time) const {
  const auto after = std::ranges::upper_bound(times_, time);
  return after == times_.begin() ? 0 : static_cast<std::size_t>(after - times_.begin()) - 1;
}

double LinkActivity::first_window(double from, double duration, std::int64_t wanted) const {
  // Consecutive free segments form a window; a window that begins before `from` is cut there. As in
  // the reference, lengths are compared as end - start, which matters for fractional times.
  double start = from;
  for (std::size_t i = segment_at(from); i < times_.size(); ++i) {
    if (in_use_[i] + wanted <= bandwidth_)
      continue;
    const double end = std::max(times_[i], from);
    if (end - start >= duration)
      return start;
    start = i + 1 < times_.size() ? times_[i + 1] : std::numeric_limits<double>::infinity();
  }
  return start;
}

std::size_t LinkActivity::breakpoint(double time) {
  const auto at = std::ranges::lower_bound(times_, time);
  const auto index = static_cast<std::size_t>(at - times_.begin());
  if (at != times_.end() && *at == time)
    return index;
  times_.insert(at, time);
  const std::int64_t before = index == 0 ? 0 : in_use_[index - 1];
  in_use_.insert(in_use_.begin() + static_cast<std::ptrdiff_t>(index), before);
  return index;
}

void LinkActivity::book(double start, double end, std::int64_t bandwidth) {
  const std::size_t first = breakpoint(start);
  const std::size_t last = breakpoint(end);
  for (std::size_t i = first; i < last; ++i)
    in_use_[i] += bandwidth;
}

double first_common_window(const std::vector<LinkActivity>& links,
                           std::span<const LinkRequest> wanted, double from, double duration) {
  for (bool moved = true; moved;) {
    moved = false;
    for (const LinkRequest& request : wanted) {
      const double at = links[request.link].first_window(from, duration, request.bandwidth);
      moved = moved || at != from;
      from = at;
    }
  }
  return from;
}

} // namespace monet::stream

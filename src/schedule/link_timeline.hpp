// When an exclusive resource (a link, a bus, a port) is busy.
#pragma once

#include "monet/base/interval.hpp"

#include <cstdint>
#include <span>
#include <vector>

namespace monet {

/// Busy intervals in order. Only the latest kMostGaps idle gaps are remembered: older ones count as
/// busy, which bounds the search and only ever delays a transfer.
class LinkTimeline {
public:
  /// First time >= `from` at which the resource is idle for `length` cycles.
  std::int64_t first_gap(std::int64_t from, std::int64_t length) const;
  /// Marks an idle interval as busy.
  void occupy(std::int64_t start, std::int64_t end);

private:
  static constexpr std::size_t kMostGaps = 128;
  std::vector<Interval> busy_; ///< disjoint, in order, touching ones merged
};

/// First time >= `from` at which all resources are idle for `length` cycles.
std::int64_t first_common_gap(const std::vector<LinkTimeline>& timelines,
                              std::span<const std::size_t> wanted, std::int64_t from,
                              std::int64_t length);

} // namespace monet

// Bandwidth of links in use over time, as booked by the reference scheduler.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace monet::stream {

/// The bandwidth in use as a step function of time. Bookings may exceed the link's bandwidth,
/// because windows are searched for scaled bandwidths but booked with unscaled ones.
class LinkActivity {
public:
  explicit LinkActivity(std::int64_t bandwidth) : bandwidth_(bandwidth) {}

  std::int64_t bandwidth() const { return bandwidth_; } ///< bits per cycle

  /// The first time >= `from` from which `wanted` bits per cycle are free for at least `duration`
  /// cycles. `wanted` must be at most bandwidth().
  double first_window(double from, double duration, std::int64_t wanted) const;

  /// Books `bandwidth` from `start` to `end` > `start`.
  void book(double start, double end, std::int64_t bandwidth);

private:
  std::int64_t bandwidth_;
  std::vector<double> times_{0.0};           ///< ascending
  std::vector<std::int64_t> in_use_{0};      ///< from times_[i] to times_[i + 1]
  std::size_t breakpoint(double time);       ///< index of `time`; inserted if absent
  std::size_t segment_at(double time) const; ///< index of the segment that contains `time`
};

/// A link of a path and the bandwidth requested of it.
struct LinkRequest {
  std::size_t link = 0;
  std::int64_t bandwidth = 0; ///< bits per cycle
};

/// The first time >= `from` at which all requested bandwidths are free for `duration` cycles.
double first_common_window(const std::vector<LinkActivity>& links,
                           std::span<const LinkRequest> wanted, double from, double duration);

} // namespace monet::stream

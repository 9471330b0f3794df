// How much of a link's bandwidth is in use over time, as the reference scheduler books it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace monet::stream {

/// Step function of the bandwidth in use. Bookings may exceed the link: the search looks for scaled
/// bandwidths, but what is booked is not scaled.
class LinkActivity {
public:
  explicit LinkActivity(std::int64_t bandwidth) : bandwidth_(bandwidth) {}

  std::int64_t bandwidth() const { return bandwidth_; } ///< bits per cycle

  /// First time >= `from` at which a stretch of at least `duration` cycles begins in which `wanted`
  /// bits per cycle are left, the stretch counted from the time returned. `wanted` <= bandwidth().
  double first_window(double from, double duration, std::int64_t wanted) const;

  /// Books `bandwidth` from `start` to `end` > `start`.
  void book(double start, double end, std::int64_t bandwidth);

private:
  std::int64_t bandwidth_;
  std::vector<double> times_{0.0};           ///< ascending
  std::vector<std::int64_t> in_use_{0};      ///< from times_[i] to times_[i + 1]
  std::size_t breakpoint(double time);       ///< index of `time`, inserted when absent
  std::size_t segment_at(double time) const; ///< index of the segment that contains `time`
};

/// One link of a path and what is wanted of it.
struct LinkRequest {
  std::size_t link = 0;
  std::int64_t bandwidth = 0; ///< bits per cycle
};

/// First time >= `from` at which all links have the wanted bandwidth for `duration` cycles.
double first_common_window(const std::vector<LinkActivity>& links,
                           std::span<const LinkRequest> wanted, double from, double duration);

} // namespace monet::stream

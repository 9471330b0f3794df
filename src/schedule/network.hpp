// Transfers over links and the off-chip memory's ports: when they fit, how long they take, what
// they cost.
#pragma once

#include "schedule/link_timeline.hpp"

#include "monet/hardware/chip.hpp"
#include "monet/schedule/timeline.hpp"

#include <optional>
#include <vector>

namespace monet {

/// A transfer that is wanted; `operand` is the memory operand it is stored as at the receiving
/// core.
struct TransferRequest {
  TransferKind kind = TransferKind::fetch;
  TensorId tensor;
  OpId op;
  CoreId from;
  CoreId to;
  Bits bits;
  MemoryOperand operand = MemoryOperand::I1;
};

/// A transfer that has its place in time. Its links are those of the route.
struct Booking {
  std::uint32_t route = 0; ///< index into Network::routes()
  std::int64_t start = 0;
  std::int64_t end = 0;
  Energy link_energy;
  Energy offchip_energy;
  Energy onchip_energy;
};

class Network {
public:
  explicit Network(const Chip& chip);

  CoreId offchip() const { return *chip_.offchip; }
  /// A route exists; routes never pass through the off-chip memory.
  bool direct(CoreId from, CoreId to) const;
  /// ceil(bits / narrowest link or port on the way).
  std::int64_t duration(CoreId from, CoreId to, Bits bits) const;
  /// First time >= ready at which the whole route is idle long enough.
  std::int64_t earliest(CoreId from, CoreId to, Bits bits, std::int64_t ready) const;
  /// Books the route at earliest(ready) and fills in everything else.
  Booking reserve(const TransferRequest& request, std::int64_t ready);
  /// Every route that was booked, in order of its first booking.
  const std::vector<Route>& routes() const { return routes_; }

private:
  struct Path {
    std::vector<std::size_t> resources; ///< links by id, then the ports
    std::int64_t bits_per_cycle = 0;
    bool direct = false;
    std::optional<std::uint32_t> route; ///< index into routes_
  };
  const Path& path(CoreId from, CoreId to) const;
  Path make_path(CoreId from, CoreId to) const;
  std::uint32_t route(CoreId from, CoreId to);
  void add_energy(const TransferRequest& request, Booking& booking) const;

  const Chip& chip_;
  OffchipPort port_;
  std::vector<LinkTimeline>
      timelines_;           ///< links, then the read port and (when separate) the write port
  std::vector<Path> paths_; ///< [from * cores + to]
  std::vector<Route> routes_;
};

} // namespace monet

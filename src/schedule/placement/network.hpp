// Transfers over links and the ports of the off-chip memory: when they fit, how long they take and
// what they cost.
//
// A transfer has one speed, at most that of the narrowest link or port on its route, and occupies
// this much bandwidth of each of them. Transfers share a link while their speeds add up to at most
// its bandwidth. A transfer starts at the first cycle at which its full speed is free on the whole
// route. It may also start at once with the speed that is free, or move in several pieces in gaps
// between other transfers, whichever ends first.
//
// Data arrive at a receiver when the latencies of its links have passed after the last bit; the
// links are free before that. A transfer from or to an off-chip memory with rows occupies its links
// longer by the rows that it opens (OffchipPort); each piece opens its rows separately.
//
// The off-chip port limits most steps. A transfer between cores therefore leaves the port's width
// free on links that the port's transfers also use and that are at least twice as wide as the port.
#pragma once

#include "schedule/placement/link_timeline.hpp"

#include "monet/hardware/chip.hpp"
#include "monet/schedule/schedule.hpp"
#include "monet/schedule/timeline.hpp"

#include <array>
#include <map>
#include <span>
#include <unordered_map>
#include <vector>

namespace monet {

/// A requested transfer. The receiving core stores the data under the memory operand `operand`.
struct TransferRequest {
  TransferKind kind = TransferKind::fetch;
  TensorId tensor;
  OpId op;
  CoreId from;
  CoreId to;
  Bits bits;
  MemoryOperand operand = MemoryOperand::I1;
  /// Further receivers of the same data, each once. Every link on the route to any of them carries
  /// the data once, the sender reads them once, and each receiver writes them.
  std::span<const CoreId> also = {};
  /// Rows of the off-chip memory in which the data are stored; 0: opening rows takes no time.
  std::int64_t rows = 0;
};

/// A booked transfer, or a piece of one. Its links are those of the route.
struct Booking {
  std::uint32_t route = 0; ///< index into Network::routes()
  std::int64_t start = 0;
  std::int64_t end = 0;
  Bits bits;
  Energy link_energy;
  Energy offchip_energy;
  Energy onchip_energy;
  std::int64_t rows = 0; ///< opened in the off-chip memory
};

/// Plans and books transfers on the links and off-chip ports of a chip.
class Network {
public:
  explicit Network(const Chip& chip, const TransferRules& rules = {});

  CoreId offchip() const { return *chip_.offchip; }
  /// True if there is a usable route. Routes never pass through the off-chip memory.
  bool direct(CoreId from, CoreId to) const;
  /// Minimum cycles for which the transfer occupies its links, for one receiver: its bits over the
  /// narrowest link or port of the fastest route, rounded up, plus the time to open rows.
  std::int64_t occupancy(const TransferRequest& request);
  /// Minimum cycles from the start of the transfer until the data arrive, for one receiver.
  std::int64_t duration(const TransferRequest& request);
  /// Cycle at which all receivers would have the data if reserve() were called now with these
  /// arguments. Books nothing.
  std::int64_t arrival(const TransferRequest& request, std::int64_t ready);
  /// Lower bound on arrival() with these arguments, computed in a few steps. For one receiver.
  std::int64_t soonest(const TransferRequest& request, std::int64_t ready);
  /// Cycle at which the receiver has the booked data.
  std::int64_t arrival(const Booking& booking, CoreId receiver) const;
  /// Books the transfer, at `ready` or later, on the route on which it arrives first. Returns its
  /// pieces in order of time; they are valid until the next call.
  std::span<const Booking> reserve(const TransferRequest& request, std::int64_t ready);
  /// All routes used so far; Booking::route is an index into this list.
  const std::vector<Route>& routes() const { return routes_; }

private:
  static constexpr std::uint32_t kMaxPieces = 4;

  /// A route with the state that booking needs.
  struct Path {
    std::vector<std::uint32_t> resources; ///< links, then ports; without those that are never full
    std::int64_t bits_per_cycle = 0;      ///< full speed
    std::int64_t latency = 0;             ///< cycles from the last bit sent to its last arrival
    /// Per length: no transfer of this length and full speed can start in [from, until). This stays
    /// true since bookings are never undone.
    struct Full {
      std::int64_t from = 0;
      std::int64_t until = 0;
    };
    std::unordered_map<std::int64_t, Full> full;
  };
  /// The routes from a core to some receivers: at most two.
  struct Paths {
    std::uint32_t first = 0; ///< index into paths_ and routes_
    std::uint32_t count = 0; ///< 0: not searched yet
  };
  struct Plan {
    std::int64_t start = 0;
    std::int64_t end = 0; ///< when the last bit is sent
    std::int64_t share = 0;
    std::uint32_t path = 0;
    std::uint32_t pieces = 1; ///< the last one spans start to end
    std::array<std::pair<std::int64_t, std::int64_t>, kMaxPieces - 1> before{}; ///< earlier ones
  };
  Paths ways(const TransferRequest& request);
  Paths add_ways(CoreId from, std::span<const CoreId> to);
  /// Links to all receivers, and the total latency to each receiver.
  struct Tree {
    std::vector<LinkId> links;
    std::vector<std::int64_t> latency;
  };
  void add_path(CoreId from, std::span<const CoreId> to, Tree tree);
  void add_to(Tree& tree, const std::vector<LinkId>& way) const;
  std::int64_t first_fit(std::uint32_t path, std::int64_t from, std::int64_t length,
                         std::int64_t share);
  /// A recent plan; requests are usually planned several times before they are booked.
  struct Planned {
    CoreId from, to;
    Bits bits;
    std::int64_t rows = 0;
    std::int64_t ready = -1; ///< -1: empty
    Plan plan;
  };
  static constexpr std::size_t kPlansKept = 4;

  Plan plan(const TransferRequest& request, std::int64_t ready);
  Plan new_plan(const TransferRequest& request, std::int64_t ready);
  Plan plan_on(std::uint32_t path, const TransferRequest& request, std::int64_t ready);
  Plan share_now(std::uint32_t path, const TransferRequest& request, std::int64_t ready,
                 std::int64_t before);
  Plan split(std::uint32_t path, const TransferRequest& request, std::int64_t ready,
             std::int64_t before);
  template <class Visit>
  void for_each_offchip_way(Visit visit) const;
  bool port_can_be_full(bool read) const;
  std::int64_t speed_beside_port(LinkId link) const;
  void add_energy(const TransferRequest& request, Bits before, Booking& booking) const;

  const Chip& chip_;
  TransferRules rules_;
  std::vector<WordAccess> reads_;  ///< per core, for results
  std::vector<WordAccess> writes_; ///< [core * kMemoryOperands + operand]
  OffchipPort port_;
  bool read_port_counts_ = true; ///< false: a link on every route to it is as narrow
  bool write_port_counts_ = true;
  bool has_latency_ = false; ///< some link has a latency
  std::vector<LinkTimeline>
      timelines_;                ///< links, then the read port and, if separate, the write port
  std::vector<bool> to_offchip_; ///< per link: on a route to or from off-chip
  std::vector<Paths> ways_;      ///< [from * cores + to]
  std::map<std::vector<CoreId>, Paths> trees_; ///< by sender and receivers
  std::vector<CoreId> key_;                    ///< scratch
  std::vector<Path> paths_;
  std::vector<Route> routes_;   ///< per path
  std::vector<Booking> booked_; ///< pieces of the last request
  std::array<Planned, kPlansKept> planned_;
  std::size_t next_planned_ = 0;
};

} // namespace monet

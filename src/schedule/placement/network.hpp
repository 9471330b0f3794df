// Transfers over links and the off-chip memory's ports: when they fit, how long they take, what
// they cost.
//
// A transfer goes at one speed, at most that of the narrowest link or port on its way, and takes as
// much of every one of them as that speed needs; several share a link while their speeds add up to
// no more than its bandwidth. It starts at the first cycle at which its full speed is free all the
// way, or, if it ends sooner so, at once with the speed that is free then, or in several pieces in
// gaps between others.
//
// Data are there when the latencies of the links on the receiver's way have passed after the last
// bit, while the links are free again. A transfer from or to an off-chip memory with rows takes its
// links longer by the rows that it opens (row_overhead), each piece of it by itself.
//
// The off-chip port is what most steps wait for. A transfer between cores over a link at least
// twice as wide as the port, on which the port's transfers go, too, leaves the port its width.
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
  /// More receivers of the same data, each once: every link on the way to any of them carries it
  /// once, the sender reads it once, each receiver writes it.
  std::span<const CoreId> also = {};
  /// Rows of the off-chip memory in which the data lie; 0 = opening them takes no time.
  std::int64_t rows = 0;
};

/// A transfer, or a piece of one, that has its place in time. Its links are those of the route.
struct Booking {
  std::uint32_t route = 0; ///< index into Network::routes()
  std::int64_t start = 0;
  std::int64_t end = 0;
  Bits bits;
  Energy link_energy;
  Energy offchip_energy;
  Energy onchip_energy;
  std::int64_t rows = 0; ///< of the off-chip memory, that it opens
};

class Network {
public:
  explicit Network(const Chip& chip, const TransferRules& rules = {});

  CoreId offchip() const { return *chip_.offchip; }
  /// A route exists; routes never pass through the off-chip memory.
  bool direct(CoreId from, CoreId to) const;
  /// ceil(bits / narrowest link or port on the way) of the fastest way, and the opening of rows: no
  /// transfer takes its links for less. One receiver.
  std::int64_t occupancy(const TransferRequest& request);
  /// The same until the data are there.
  std::int64_t duration(const TransferRequest& request);
  /// When the data of the transfer that reserve() makes of the same request would be there, at all
  /// its receivers; nothing is booked.
  std::int64_t arrival(const TransferRequest& request, std::int64_t ready);
  /// No later than that, in a few steps. One receiver.
  std::int64_t soonest(const TransferRequest& request, std::int64_t ready);
  /// When a receiver has what was booked.
  std::int64_t arrival(const Booking& booking, CoreId receiver) const;
  /// Books the way on which the request, made no earlier than `ready`, arrives first. In order of
  /// time; valid until the next call.
  std::span<const Booking> reserve(const TransferRequest& request, std::int64_t ready);
  /// Every route that was asked for.
  const std::vector<Route>& routes() const { return routes_; }

  /// Energy of a core's top memory, by words of its port.
  struct WordCost {
    std::int64_t bits = 1;
    double energy_pj = 0;
    double of(Bits moved) const {
      const std::int64_t words = moved.value / bits + (moved.value % bits > 0 ? 1 : 0);
      return static_cast<double>(words) * energy_pj;
    }
  };

private:
  static constexpr std::uint32_t kMaxPieces = 4;

  /// A route as it is booked.
  struct Path {
    std::vector<std::uint32_t> resources; ///< links by id, then the ports; those that can be full
    std::int64_t bits_per_cycle = 0;      ///< full speed
    std::int64_t latency = 0; ///< from the last bit sent to the last bit at the last receiver
    /// By length: from `from` to `until` nothing that long begins at full speed. What is booked
    /// stays booked, so this stays true.
    struct Full {
      std::int64_t from = 0;
      std::int64_t until = 0;
    };
    std::unordered_map<std::int64_t, Full> full;
  };
  /// The ways from a core to some others: at most two.
  struct Paths {
    std::uint32_t first = 0; ///< index into paths_ and routes_
    std::uint32_t count = 0; ///< 0 = not looked for yet
  };
  struct Plan {
    std::int64_t start = 0;
    std::int64_t end = 0; ///< of the last bit sent
    std::int64_t share = 0;
    std::uint32_t path = 0;
    std::uint32_t pieces = 1; ///< the last of them reaches from start to end
    std::array<std::pair<std::int64_t, std::int64_t>, kMaxPieces - 1> before{}; ///< the others
  };
  Paths ways(const TransferRequest& request);
  Paths add_ways(CoreId from, std::span<const CoreId> to);
  /// The links to all receivers, and the sum of latencies to each.
  struct Tree {
    std::vector<LinkId> links;
    std::vector<std::int64_t> latency;
  };
  void add_path(CoreId from, std::span<const CoreId> to, Tree tree);
  void add_to(Tree& tree, const std::vector<LinkId>& way) const;
  std::int64_t first_fit(std::uint32_t path, std::int64_t from, std::int64_t length,
                         std::int64_t share);
  /// A plan is asked for more than once before it is booked: the last few are known.
  struct Planned {
    CoreId from, to;
    Bits bits;
    std::int64_t rows = 0;
    std::int64_t ready = -1; ///< -1: none
    Plan plan;
  };
  static constexpr std::size_t kPlansKept = 4;

  Plan plan(const TransferRequest& request, std::int64_t ready);
  Plan new_plan(const TransferRequest& request, std::int64_t ready);
  std::int64_t cycles(const TransferRequest& request, std::int64_t bits_per_cycle) const;
  std::int64_t rows_of_part(const TransferRequest& request, std::int64_t bits_per_cycle,
                            std::int64_t streaming) const;
  std::int64_t cycles_of_part(const TransferRequest& request, std::int64_t bits_per_cycle,
                              std::int64_t streaming) const;
  std::int64_t streaming_in(const TransferRequest& request, std::int64_t bits_per_cycle,
                            std::int64_t length, std::int64_t most) const;
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
  std::vector<WordCost> reads_;  ///< per core, as results
  std::vector<WordCost> writes_; ///< [core * kMemoryOperands + operand]
  OffchipPort port_;
  bool read_port_counts_ = true; ///< false: a link on every way to it is as narrow
  bool write_port_counts_ = true;
  bool has_latency_ = false; ///< of any link
  std::vector<LinkTimeline>
      timelines_;                ///< links, then the read port and (when separate) the write port
  std::vector<bool> to_offchip_; ///< per link: on a way to or from the off-chip memory
  std::vector<Paths> ways_;      ///< [from * cores + to]
  std::map<std::vector<CoreId>, Paths> trees_; ///< by sender and receivers
  std::vector<CoreId> key_;                    ///< scratch
  std::vector<Path> paths_;
  std::vector<Route> routes_;   ///< of the paths
  std::vector<Booking> booked_; ///< the last request
  std::array<Planned, kPlansKept> planned_;
  std::size_t next_planned_ = 0;
};

} // namespace monet

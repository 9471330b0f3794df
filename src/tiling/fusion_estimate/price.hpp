// Prices of groups of operators on a chip by closed forms: cycles, off-chip bits and tiles.
#pragma once

#include "tiling/fusion_estimate/groups.hpp"
#include "tiling/stacks/stacks.hpp"

#include "monet/hardware/chip.hpp"
#include "monet/workload/graph.hpp"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace monet {

/// Off-chip traffic of every operator of a step when operators run whole, one after the other.
/// Tensors stay on the chip while there is room; the farthest next use is evicted first.
struct StepTraffic {
  enum class Source : std::uint8_t {
    chip,    ///< already on the chip
    fetched, ///< from the off-chip memory, once
    streamed ///< from the off-chip memory, on every pass of the operator
  };
  std::vector<std::vector<Source>> reads; ///< per operator and operand
  std::vector<bool> stored;               ///< per tensor: written to the off-chip memory
};

/// Division of an operator over the memories of several cores.
struct OperatorSpread {
  std::int64_t room = 0;           ///< bits that the operator's cores hold
  std::vector<std::int64_t> cores; ///< per operand: cores that each hold all of it
};

/// Off-chip traffic of the step. A pool is a set of cores with its memories: `pool` holds that of
/// each operator, and `room` the bits of each. `spread`, unless empty, holds each operator's share.
StepTraffic step_traffic(const Graph& graph, std::span<const std::uint32_t> pool,
                         std::span<const std::int64_t> room,
                         std::span<const OperatorSpread> spread = {});

/// Cost of a group or of an operator on the chip.
struct GroupPrice {
  double cycles = 0;
  double bits = 0; ///< through the off-chip port
  double tiles = 0;

  GroupPrice& operator+=(const GroupPrice& other) {
    cycles += other.cycles;
    bits += other.bits;
    tiles += other.tiles;
    return *this;
  }
};

/// Widths of the ports that reads and writes pass, in bits per cycle.
struct PortWidths {
  double read = 1;
  double write = 1;
  bool shared = true; ///< one port serves both

  /// Cycles for which the ports are busy with these bits.
  double cycles(double read_bits, double written_bits) const {
    const double reads = read_bits / read;
    const double writes = written_bits / write;
    return shared ? reads + writes : std::max(reads, writes);
  }
};
/// Ports of a core's outermost memories; infinitely wide where the core has none.
PortWidths ports_of(const Core& core);

/// Prices groups and single operators on one chip.
class GroupPricer {
public:
  /// `cores`: per operator, the cores that may run it. The graph and the chip must outlive the
  /// pricer.
  GroupPricer(const Graph& graph, const Chip& chip, CoreLists cores);

  /// Limits groups to the fraction `share` of all memories; the rest is left to later operators.
  void use(double share) { share_ = share; }

  /// Key that is equal for chips with equal prices, if learn() has not been called.
  std::string key() const;

  /// Records that the slices take `cycles` together on the busiest core. Slices of other sizes are
  /// scaled like the most similar recorded ones. True if the slices were not recorded yet.
  bool learn(OpId op, const GroupSlices::Member& slices, double cycles);

  /// Price of the group sliced in this way; nullopt if the slices do not fit.
  std::optional<GroupPrice> price(const NeighbourGroup& group, const GroupSlices& way);
  /// Price of an operator that runs whole and alone.
  GroupPrice alone(OpId op);

private:
  /// Division of an operator's slices over cores, and the cycles of one slice.
  struct Share {
    GroupSlices::Parts parts;
    double cycles = 0;                ///< of one slice
    double least = 0;                 ///< minimum cycles to move its operands within the core
    std::optional<std::uint32_t> dim; ///< loop that is divided
    std::int64_t cores = 1;
  };
  struct SliceTraffic;
  struct MeasuredSlowdown { ///< measured / estimated cycles of slices
    GroupSlices::Parts parts;
    double slowdown = 1;
  };
  struct Use { ///< use of port, cores and links by one member
    double read = 0;
    double written = 0;
    double cycles = 0;
    double links = 0; ///< cycles to bring other operators' results to its cores
  };
  struct KeptItem { ///< operand that a group keeps, or brings for each slice
    const GroupSpace::Kept* kept;
    std::uint32_t pool;
    std::int64_t bits;    ///< on all cores
    std::int64_t on_core; ///< on each core that holds it
    double again;         ///< bits moved if it is not kept
  };
  /// Bandwidth from the cores of one pool to those of another, in bits per cycle.
  struct Transport {
    double parts = 0; ///< if each core receives its part
    double all = 0;   ///< if all receive the same data
  };

  const Core& weakest(std::size_t op) const;
  void measure_ways();
  double link_cycles(OpId reader, const Access& access, const Share& own) const;
  const Share& share(OpId op, const GroupSlices::Parts& parts);
  const Share& add_share(OpId op, const GroupSlices::Parts& parts);
  SliceTraffic traffic_of(const LoopNest& nest, std::span<const Interval> slice,
                          const GroupSlices::Parts& parts) const;
  double cycles(OpId op, const Share& own) const;
  std::int64_t part(std::int64_t bits) const {
    return static_cast<std::int64_t>(share_ * static_cast<double>(bits));
  }
  OperatorSpread spread(OpId op);
  void traffic(const std::vector<OpId>& members, bool whole);
  bool tiles_fit(const NeighbourGroup& group, const GroupSlices& way) const;
  std::int64_t together(const NeighbourGroup& group);
  bool keep(const NeighbourGroup& group, const GroupSlices& way);
  void add_links(const std::vector<OpId>& members, std::size_t m);
  GroupPrice total(const NeighbourGroup& group, double slices);

  const Graph& graph_;
  const Chip& chip_;
  CoreLists cores_;
  MemoryCapacity room_;
  std::vector<std::uint32_t> pool_;     ///< per operator: index of its set of cores
  std::vector<std::vector<bool>> used_; ///< per pool: flag per core
  std::vector<std::int64_t> pool_bits_; ///< per pool: all its memories
  std::vector<std::int64_t> core_bits_; ///< per pool: its smallest memory
  std::vector<std::int64_t> tile_bits_; ///< per pool: maximum for one tile
  std::int64_t onchip_ = 0;
  std::vector<OperatorSpread> spread_; ///< per operator, run whole
  StepTraffic alone_;
  double share_ = 1; ///< usable fraction of the memories
  PortWidths offchip_;
  std::vector<double> bits_;                             ///< per tensor
  std::vector<std::vector<Share>> known_;                ///< per operator
  std::vector<std::vector<MeasuredSlowdown>> slowdowns_; ///< per operator
  std::vector<std::uint64_t> seen_;                      ///< per tensor
  std::uint64_t sight_ = 0;
  std::vector<Use> uses_;            ///< per member of the current group
  std::vector<const Share*> shares_; ///< per member of the current group
  std::vector<Transport> ways_;      ///< [from * pools + to]
  std::vector<double> busy_;         ///< per pool, for the current group
  std::vector<KeptItem> kept_;
  std::vector<std::int64_t> left_on_core_; ///< per pool
  std::vector<bool> used_by_group_;        ///< per core
};

} // namespace monet

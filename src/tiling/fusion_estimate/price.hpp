// What groups come to on a chip, by closed forms.
#pragma once

#include "tiling/fusion_estimate/groups.hpp"
#include "tiling/stacks/stacks.hpp"

#include "monet/hardware/chip.hpp"
#include "monet/workload/graph.hpp"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace monet {

/// What each operator of a step moves through the off-chip port when operators run whole, one after
/// the other: tensors stay on the chip as long as there is room, those go first that are read last.
struct StepTraffic {
  enum class Source : std::uint8_t {
    chip,    ///< it is there already
    fetched, ///< it comes from the off-chip memory, to stay
    streamed ///< it comes from there as often as the operator goes over it
  };
  std::vector<std::vector<Source>> reads; ///< per operator and operand
  std::vector<bool> stored;               ///< per tensor: it is written to the off-chip memory
};

/// How an operator is shared out over the memories of several cores.
struct OperatorSpread {
  std::int64_t room = 0;           ///< bits that the cores hold that run it
  std::vector<std::int64_t> cores; ///< per operand, that each have the whole of it
};

/// `pool` says per operator which memory its operands lie in, `room` how many bits that holds, and
/// `spread`, where it is given, how much of it each operator has.
StepTraffic step_traffic(const Graph& graph, std::span<const std::uint32_t> pool,
                         std::span<const std::int64_t> room,
                         std::span<const OperatorSpread> spread = {});

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

class GroupPricer {
public:
  /// `cores`: per operator those that may run it. Graph and chip must outlive this.
  GroupPricer(const Graph& graph, const Chip& chip, CoreLists cores);

  /// Leaves a part of all memories to what comes next: groups have `share` of what they had.
  void use(double share) { share_ = share; }

  /// Equal for chips on which all prices are the same as long as nothing is learnt.
  std::string key() const;

  /// The slices take the busiest core so many cycles together; others of the operator, cut along
  /// the same loops, are estimated by the closest that are known. True when that is news.
  bool learn(OpId op, const GroupSlices::Member& slices, double cycles);

  /// None where slices do not fit.
  std::optional<GroupPrice> price(const NeighbourGroup& group, const GroupSlices& way);
  /// Of an operator that runs whole and alone.
  GroupPrice alone(OpId op);

private:
  /// How the slices of an operator are shared out, and the cycles of one.
  struct Share {
    GroupSlices::Parts parts;
    double cycles = 0;                ///< of one slice
    double least = 0;                 ///< cycles of moving its operands within the core
    std::optional<std::uint32_t> dim; ///< that is shared out
    std::int64_t cores = 1;
  };
  struct MeasuredSlowdown { ///< cycles of slices over those estimated
    GroupSlices::Parts parts;
    double slowdown = 1;
  };
  struct Use { ///< of the port, the cores and the links by one member
    double read = 0;
    double written = 0;
    double cycles = 0;
    double links = 0; ///< cycles of bringing what other operators made to the member's cores
  };
  struct KeptItem { ///< what a group keeps, or brings again for each slice
    const GroupSpace::Kept* kept;
    std::uint32_t pool;
    std::int64_t bits;    ///< on all cores
    std::int64_t on_core; ///< on each of those that have it
    double again;         ///< bits moved when it is not kept
  };
  /// From the cores of one pool to those of another, in bits per cycle.
  struct Transport {
    double parts = 0; ///< to each its own
    double all = 0;   ///< the same to all of them
  };

  const Core& weakest(std::size_t op) const;
  void measure_ways();
  double link_cycles(OpId reader, const Access& access, const Share& own) const;
  double port_cycles(double read, double written) const;
  const Share& share(OpId op, const GroupSlices::Parts& parts);
  const Share& add_share(OpId op, const GroupSlices::Parts& parts);
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
  std::vector<std::uint32_t> pool_;     ///< per operator: the cores' list
  std::vector<std::vector<bool>> used_; ///< per pool: per core
  std::vector<std::int64_t> pool_bits_; ///< per pool: of all its cores
  std::vector<std::int64_t> core_bits_; ///< per pool: of the smallest core
  std::vector<std::int64_t> tile_bits_; ///< per pool: that a tile may take
  std::int64_t onchip_ = 0;
  std::vector<OperatorSpread> spread_; ///< per operator that runs whole
  StepTraffic alone_;
  double share_ = 1; ///< of the memories
  double read_width_ = 1;
  double write_width_ = 1;
  bool shared_port_ = true;
  std::vector<double> bits_;                             ///< per tensor
  std::vector<std::vector<Share>> known_;                ///< per operator
  std::vector<std::vector<MeasuredSlowdown>> slowdowns_; ///< per operator
  std::vector<std::uint64_t> seen_;                      ///< per tensor
  std::uint64_t sight_ = 0;
  std::vector<Use> uses_;            ///< per member of the group at hand
  std::vector<const Share*> shares_; ///< the same
  std::vector<Transport> ways_;      ///< [from * pools + to]
  std::vector<double> busy_;         ///< per pool, of the group at hand
  std::vector<KeptItem> kept_;
  std::vector<std::int64_t> left_on_core_; ///< per pool
  std::vector<bool> used_by_group_;        ///< per core
};

} // namespace monet

// A chip: cores, one off-chip memory, and the links between them. The format is Stream's system
// file.
// Example:
//   std::int64_t route_latency_cycles(const Chip& chip, CoreId from, CoreId to) {
//     std::int64_t cycles = 0;
//     for (const LinkId link : chip.route(from, to))
//       cycles += chip.links[link.index()].latency_cycles;
//     return cycles;
//   }
#pragma once

#include "monet/base/errors.hpp"
#include "monet/hardware/core.hpp"

#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace monet {

/// Pairs of its cores between which a link carries data.
enum class LinkReach {
  any_pair,      ///< a bus: between any two of its cores
  forward,       ///< from cores[0] to cores[1]; a bidirectional link is two of these
  offchip_both,  ///< between the off-chip memory and each core, not between cores
  offchip_read,  ///< from the off-chip memory to each core
  offchip_write, ///< from each core to the off-chip memory
};

/// A link or a bus. All transfers on it share its bandwidth.
struct Link {
  std::string name;          ///< "0>1", "bus 0-1-2", "dram"
  std::vector<CoreId> cores; ///< cores, including the off-chip core
  LinkReach reach = LinkReach::any_pair;
  std::int64_t bandwidth_bits_per_cycle = 0;
  double energy_pj_per_cycle = 0; ///< `unit_energy_cost`: per cycle at full bandwidth
  double energy_pj_per_bit = 0;   ///< optional key, plus the energy from `length_mm`
  double length_mm = 0;           ///< optional key: priced by our wire model
  /// Optional key: cycles from sending the last bit to its arrival. The link is free meanwhile.
  std::int64_t latency_cycles = 0;
};

/// A memory of a core.
struct MemoryPlace {
  CoreId core;
  std::size_t memory = 0; ///< index into the core's `memories`
  friend bool operator==(const MemoryPlace&, const MemoryPlace&) = default;
};

/// A chip, as read from a system file.
struct Chip {
  std::string name;
  std::string origin;
  std::vector<Core> cores; ///< compute cores first; the off-chip core last
  std::optional<CoreId> offchip;
  std::vector<Link> links; ///< on-chip links, then off-chip ones
  /// Groups of cores with shared memories: those of equal name and size, on any level. Their
  /// outermost memories form one pool.
  std::vector<std::vector<CoreId>> shared_memory;
  /// Groups of memories that are physically one, from `memory_aliases`. Cores listed here share no
  /// other memories.
  std::vector<std::vector<MemoryPlace>> memory_aliases;
  std::vector<bool> routers; ///< whether data may pass through each core; empty = all may
  double frequency_hz = 0;   ///< 0 = unknown: results in cycles only
  /// `unit_energy_cost` of the file. Links state their cost themselves; the reference scheduler
  /// also charges this value for off-chip links.
  double unit_energy_cost = 0;
  double technology_nm = 0; ///< node of cores that state none; 0 = unknown

  std::size_t compute_cores() const { return cores.size() - (offchip ? 1U : 0U); }
  /// Links on the way from one core to another: minimum hops, then fewest intermediate cores
  /// without an array, then maximum bandwidth, then lowest link ids. Routing through a core does
  /// not slow its computation; the off-chip memory never routes. Empty if from == to, if the cores
  /// share memories, or without a connection.
  const std::vector<LinkId>& route(CoreId from, CoreId to) const;
  bool connected(CoreId from, CoreId to) const;
  /// First of the cores that share memories with the core; the core itself if it shares none.
  CoreId memory_of(CoreId core) const;
  /// Canonical place of a memory: the first core that has the same physical memory.
  MemoryPlace place_of(MemoryPlace place) const;
  /// Bits of the outermost memories of all cores that share memories with the core, each memory
  /// counted once.
  std::int64_t pool_bits(CoreId core) const;
  /// Area of all compute cores: arrays and memories, with a shared memory counted once. Links,
  /// control and the DRAM interface are not included.
  double area_mm2() const;

  std::vector<std::vector<std::vector<LinkId>>>
      routes; ///< [from][to], made by the reader through make_routes
};

/// Fills `routes`. The readers call it; call it again after changing links by hand.
void make_routes(Chip& chip);

/// Peak power in watts, or nullopt without a frequency. It assumes that everything works in every
/// cycle: each multiplier or lane once, each memory port (off-chip, too) at full width, each link
/// at full bandwidth, plus leakage. A read-write port does the more expensive operation.
std::optional<double> peak_power_w(const Chip& chip);

/// Leakage of a core's memories in pJ per cycle; a shared memory counts for its first core only.
double leakage_per_cycle(const Chip& chip, CoreId core);

/// Alternative route with equally many hops that shares no link with route(from, to); empty if
/// there is no alternative.
std::vector<LinkId> second_route(const Chip& chip, CoreId from, CoreId to);

/// A transfer through the port of an off-chip memory, at a speed of at most the port's width.
struct PortTransfer {
  Bits bits;
  std::int64_t rows = 0; ///< rows of the memory in which the bits lie; 0: opening them is free
  std::int64_t bits_per_cycle = 1;

  /// Cycles in which the bits cross the port.
  std::int64_t streaming() const { return ceil_div(bits.value, bits_per_cycle); }
};

/// Bandwidth and energy of the off-chip memory's ports. A single port is shared by reads and
/// writes; of several ports, the widest for reads and the widest for writes are used. Not modelled:
/// latency of the memory (links have one) and refresh.
struct OffchipPort {
  std::int64_t read_bits_per_cycle = 0;
  std::int64_t write_bits_per_cycle = 0;
  bool shared = true; ///< reads and writes alternate on one port
  double read_pj_per_bit = 0;
  double write_pj_per_bit = 0;
  Bits capacity;
  std::optional<DramRows> rows; ///< nullopt: opening rows takes no time

  /// Minimum cycles for these bits in both directions, however few rows they open.
  std::int64_t min_cycles(std::int64_t read, std::int64_t written) const;
  double min_cycles(double read, double written) const;
  double energy_pj(double read, double written) const {
    return read * read_pj_per_bit + written * write_pj_per_bit;
  }

  /// Cycles for which a transfer occupies the port.
  std::int64_t cycles(const PortTransfer& transfer) const {
    return cycles_of_part(transfer, transfer.streaming());
  }
  /// Cycles of a separate part of a transfer, which crosses the port in `streaming` cycles. Its
  /// first row is opened again.
  std::int64_t cycles_of_part(const PortTransfer& transfer, std::int64_t streaming) const {
    return transfer.rows == 0 ? streaming : cycles_with_rows(transfer, streaming);
  }
  /// Rows of a part. Rows that are begun count.
  std::int64_t rows_of_part(const PortTransfer& transfer, std::int64_t streaming) const;
  /// The longest part, in streaming cycles and at most `limit`, that takes at most `length` cycles.
  /// Longer parts never take less time.
  std::int64_t longest_part(const PortTransfer& transfer, std::int64_t length,
                            std::int64_t limit) const;

private:
  std::int64_t cycles_with_rows(const PortTransfer& transfer, std::int64_t streaming) const;
};
OffchipPort offchip_port(const Chip& chip);

/// Energy to move data into or out of a core's memory, in words of its port.
struct WordAccess {
  std::int64_t bits = 1; ///< of a word
  double energy_pj = 0;  ///< per word

  /// Energy of all words that hold these bits.
  double of(Bits moved) const {
    const std::int64_t words = moved.value / bits + (moved.value % bits > 0 ? 1 : 0);
    return static_cast<double>(words) * energy_pj;
  }
};
/// Access of transfers to the top memory of an operand, by the full width of its port; free if the
/// core has no such memory.
WordAccess word_access(const Core& core, MemoryOperand operand, bool write);

/// Checks invariants: ids in range, positive bandwidths, a memory for every operand of a compute
/// core. Throws InternalError if one is violated.
void verify(const Chip& chip);

using LoopNames = std::set<std::string, std::less<>>;

/// Adds a problem for each unrolled loop that exists neither in the workload nor in any convolution
/// or matrix product.
void check_loops(std::span<const Unrolling> unrollings, const LoopNames& workload,
                 const SourceLoc& where, ProblemList& problems);
/// Checks the loops of the dataflows of all cores of a chip, with the same rule.
void check_loops(const Chip& chip, const LoopNames& workload, ProblemList& problems);

/// Adds a problem if the unrollings have more iterations than the array dimension has positions.
void check_width(std::span<const Unrolling> unrollings, const ArrayDim& dim, const SourceLoc& where,
                 ProblemList& problems);

} // namespace monet

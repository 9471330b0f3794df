// A chip: cores, one off-chip memory, and the links between them. The format is Stream's system
// file.
#pragma once

#include "monet/hardware/core.hpp"

#include <optional>
#include <string>
#include <vector>

namespace monet {

/// Between which of its cores a link carries data.
enum class LinkReach {
  any_pair,      ///< a bus: from any of its cores to any other
  forward,       ///< from cores[0] to cores[1]; a link of two cores is one of these each way
  offchip_both,  ///< between the off-chip memory and each core, never between two cores
  offchip_read,  ///< from the off-chip memory to each core
  offchip_write, ///< from each core to the off-chip memory
};

/// A link or a bus. Whatever crosses it shares its bandwidth.
struct Link {
  std::string name;          ///< "0>1", "bus 0-1-2", "dram"
  std::vector<CoreId> cores; ///< the off-chip core counts as a core
  LinkReach reach = LinkReach::any_pair;
  std::int64_t bandwidth_bits_per_cycle = 0;
  double energy_pj_per_cycle = 0; ///< `unit_energy_cost`: per cycle of its whole bandwidth
  double energy_pj_per_bit = 0;   ///< optional key, and what `length_mm` adds
  double length_mm = 0;           ///< optional key: priced by our model of wires
  /// Optional key: from the last bit sent to the last bit there. The link is free meanwhile.
  std::int64_t latency_cycles = 0;
};

/// One of a core's memories.
struct MemoryPlace {
  CoreId core;
  std::size_t memory = 0; ///< index into the core's `memories`
  friend bool operator==(const MemoryPlace&, const MemoryPlace&) = default;
};

struct Chip {
  std::string name;
  std::string origin;
  std::vector<Core> cores; ///< compute cores first; the off-chip core last
  std::optional<CoreId> offchip;
  std::vector<Link> links; ///< on-chip links, then the off-chip ones
  /// Groups of cores with memories in common: those of equal name and size, on any level. What
  /// their outermost memories hold lies in one pool.
  std::vector<std::vector<CoreId>> shared_memory;
  /// Memories that are one, as `memory_aliases` says. Cores named here have no others in common.
  std::vector<std::vector<MemoryPlace>> memory_aliases;
  std::vector<bool> routers; ///< per core: data may pass through it; empty = through every core
  double frequency_hz = 0;   ///< 0 = not given: results in cycles only
  /// `unit_energy_cost` of the file. Links name theirs; the reference scheduler charges it for the
  /// off-chip links too.
  double unit_energy_cost = 0;
  double technology_nm = 0; ///< of cores that give none; 0 = not given

  std::size_t compute_cores() const { return cores.size() - (offchip ? 1U : 0U); }
  /// Links crossed from one core to the other: fewest hops, then fewest cores on the way that are
  /// no arrays, then the widest, then lowest link ids. Routers of other cores pass data on without
  /// keeping them from computing; the off-chip memory never does. Empty when from == to, when they
  /// share memories, or when there is no way.
  const std::vector<LinkId>& route(CoreId from, CoreId to) const;
  bool connected(CoreId from, CoreId to) const;
  /// The first of the cores that share memories with the core: itself where it shares none.
  CoreId memory_of(CoreId core) const;
  /// The same physical memory, of the first core that has it.
  MemoryPlace place_of(MemoryPlace place) const;
  /// Bits of the outermost memories of all cores that share memories with the core, each once.
  std::int64_t pool_bits(CoreId core) const;
  /// Of all compute cores: arrays and memories, one shared by several cores once. Links, control
  /// and the DRAM's interface are not in it.
  double area_mm2() const;

  std::vector<std::vector<std::vector<LinkId>>>
      routes; ///< [from][to], made by the reader through make_routes
};

/// Fills `routes`. Called by the readers; call it again after changing links by hand.
void make_routes(Chip& chip);

/// Watts when everything works in every cycle: each multiplier or lane once, each port of every
/// memory (the off-chip one too) at its full width, each link at its full bandwidth, and the
/// memories' leakage; a port for both ways does the dearer. Nothing without a frequency.
std::optional<double> peak_power_w(const Chip& chip);

/// pJ that a core's memories lose per cycle; one that several cores share loses it on the first.
double leakage_per_cycle(const Chip& chip, CoreId core);

/// Another way with as few hops that shares no link with route(from, to); empty when there is none.
std::vector<LinkId> second_route(const Chip& chip, CoreId from, CoreId to);

/// Bits per cycle and pJ per bit of the off-chip memory's ports. One port is shared by reads and
/// writes; of several, the widest that reads and the widest that writes count.
struct OffchipPort {
  std::int64_t read_bits_per_cycle = 0;
  std::int64_t write_bits_per_cycle = 0;
  bool shared = true; ///< reads and writes take turns on one port
  double read_pj_per_bit = 0;
  double write_pj_per_bit = 0;
  Bits capacity;
  std::optional<DramRows> rows; ///< none: opening rows takes no time
};
OffchipPort offchip_port(const Chip& chip);

/// Invariants as InternalError: ids in range, positive bandwidths, every operand of a compute core
/// has a memory.
void verify(const Chip& chip);

} // namespace monet

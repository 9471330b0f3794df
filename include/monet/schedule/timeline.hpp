// The product of scheduling: who ran what when, every transfer, and which tensor lay where over
// time.
#pragma once

#include "monet/base/ids.hpp"
#include "monet/base/units.hpp"
#include "monet/training_graph/training.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

namespace monet {

struct TileRun {
  TileId tile;
  OpId op;
  CoreId core;
  std::uint32_t cost = 0; ///< index into Timeline::costs
  Cycles start;
  Cycles end; ///< end > start
};

/// What a run costs; equal tiles share it.
struct RunCost {
  Energy compute; ///< MACs or lane operations
  Energy memory;  ///< on-chip memories
  std::int64_t macs = 0;
  std::string variant; ///< CoreCost::variant
  Cycles latency;      ///< that the core computes; a run may take longer for what flows by
};

enum class TransferKind : std::uint8_t {
  fetch,      ///< a tensor (or the part a tile needs) comes to a core that keeps it
  stream,     ///< an operand too large for the core flows by while the tile runs
  write_back, ///< a result goes off-chip because it is an output or does not fit
  spill,      ///< evicted to make room while still needed: off-chip, or to another core
};
std::string_view name_of(TransferKind kind);

/// A way through the chip.
struct Route {
  CoreId from;
  std::vector<CoreId> to;    ///< who receives the data
  std::vector<LinkId> links; ///< all occupied while a transfer lasts
  /// Per receiver: cycles from the last bit sent to the last bit there, over the receiver's own
  /// links. Empty where no link of the chip takes any.
  std::vector<std::int64_t> latency;

  std::int64_t latency_to(std::size_t receiver) const {
    return latency.empty() ? 0 : latency[receiver];
  }
  std::int64_t longest_latency() const {
    return latency.empty() ? 0 : *std::max_element(latency.begin(), latency.end());
  }
  friend bool operator==(const Route&, const Route&) = default;
};

struct Transfer {
  Cycles start;
  Cycles end; ///< the last bit is sent and the links are free; see Route::latency
  TensorId tensor;
  OpId op;                ///< the operator it is done for; its energy is that operator's
  std::uint32_t cost = 0; ///< index into Timeline::transfer_costs
  TransferKind kind = TransferKind::fetch;
};

/// What a transfer moves and costs; transfers of equal size over one route share it.
struct TransferCost {
  std::uint32_t route = 0; ///< index into Timeline::routes
  Bits bits;               ///< that each receiver gets
  Energy link_energy;
  Energy offchip_energy;
  Energy onchip_energy;  ///< top memories read and written
  std::int64_t rows = 0; ///< opened in the off-chip memory; 0 where its rows take no time
};

/// A tensor, or a part of it, lies in a memory. One tensor may have copies in several memories.
struct ResidencyInterval {
  Cycles start;
  Cycles end; ///< kKept: when the step is over it still lies there
  TensorId tensor;
  std::uint32_t place = 0; ///< index into Timeline::places

  static constexpr Cycles kKept{std::numeric_limits<std::int64_t>::max()};
};
struct MemorySlot {
  CoreId memory; ///< core whose top memory it is (first of a sharing group), or the off-chip core
  Bits bits;
  friend bool operator==(const MemorySlot&, const MemorySlot&) = default;
};

/// Change of what a memory holds.
struct MemoryEvent {
  Cycles time;
  CoreId memory;
  TensorId tensor;
  Bits delta; ///< negative = freed
};

/// Bytes by owner, indexed by MemoryOwner.
using OwnerBytes = std::array<std::int64_t, kMemoryOwners>;

struct MemorySample {
  Cycles time;
  OwnerBytes live{}; ///< every live tensor once, wherever its copies are
};

/// Time is cut between phases without gap or overlap: a phase ends when its last tile does.
struct PhaseSpan {
  Phase phase = Phase::forward;
  Cycles start;
  Cycles end;
};

/// Made for a million tiles: what many rows have in common is stored once and referred to.
struct Timeline {
  bool complete = true;                 ///< false: given up half-way, and empty
  std::vector<TileRun> runs;            ///< by start, then tile
  std::vector<Transfer> transfers;      ///< by start
  std::vector<ResidencyInterval> stays; ///< in no particular order; see memory_events()
  std::vector<MemorySample> live;       ///< steps; one per change
  std::vector<PhaseSpan> phases;        ///< in order; lengths add up to the makespan
  Cycles makespan;
  MemorySample peak;           ///< of the sum over owners; the first of equals
  std::vector<Energy> leakage; ///< per core: of its memories, over the makespan

  std::vector<RunCost> costs;
  std::vector<TransferCost> transfer_costs;
  std::vector<Route> routes;
  std::vector<MemorySlot> places;

  const RunCost& cost_of(const TileRun& run) const { return costs[run.cost]; }
  const TransferCost& cost_of(const Transfer& t) const { return transfer_costs[t.cost]; }
  const Route& route_of(const Transfer& t) const { return routes[cost_of(t).route]; }
  const MemorySlot& place_of(const ResidencyInterval& stay) const { return places[stay.place]; }
  Bits bits_of(const Transfer& t) const { return cost_of(t).bits; }
  /// Cycle from which the last receiver has all of it.
  Cycles arrival_of(const Transfer& t) const {
    return {t.end.value + route_of(t).longest_latency()};
  }
};

/// Cycles of each of `phases`, which add up to the makespan: their lengths; but where one that has
/// tiles has none of its own, each cycle is its phases' that run a tile then, in equal parts, and
/// one in which none does that of the phase before.
std::vector<Cycles> phase_latencies(const Timeline& timeline, const TrainingGraph& step);

/// Every change of what the memories hold: by time, what goes before what comes.
std::vector<MemoryEvent> memory_events(const Timeline& timeline);

/// Sums over everything in the timeline.
struct EnergySplit {
  Energy compute;
  Energy onchip_memory;
  Energy links;
  Energy offchip;
  Energy leakage;
  Energy total() const { return compute + onchip_memory + links + offchip + leakage; }
  friend bool operator==(const EnergySplit&, const EnergySplit&) = default;
};
EnergySplit energy_of(const Timeline& timeline);

} // namespace monet

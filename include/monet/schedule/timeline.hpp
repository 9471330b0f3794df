// Timeline: the result of scheduling, with all runs, transfers and placements of tensors over time.
// Example:
//   double share_of_busy_cycles(const Timeline& timeline, CoreId core) {
//     Cycles busy;
//     for (const TileRun& run : timeline.runs)
//       if (run.core == core)
//         busy += run.end - run.start;
//     return static_cast<double>(busy.value) / static_cast<double>(timeline.makespan.value);
//   }
#pragma once

#include "monet/base/ids.hpp"
#include "monet/base/units.hpp"
#include "monet/training_graph/training.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

namespace monet {

/// The run of a tile on a core.
struct TileRun {
  TileId tile;
  OpId op;
  CoreId core;
  std::uint32_t cost = 0; ///< index into Timeline::costs
  Cycles start;
  Cycles end; ///< later than `start`
};

/// Cause of cycles of a run.
enum class RunCause : std::uint8_t {
  work,         ///< operations, if all lanes of the core could do them
  idle_lanes,   ///< the mapping leaves lanes without operations
  instructions, ///< instructions of processors and kernels besides the operations
  stall,        ///< operations wait for ports of the core's memories
  loading,      ///< before the first and after the last operation
  streaming,    ///< operands or results that stream off-chip arrive or leave later
};
/// Number of values of RunCause.
inline constexpr std::size_t kRunCauses = 6;
std::string_view name_of(RunCause cause);
using RunCycles = std::array<Cycles, kRunCauses>; ///< indexed by RunCause

/// Cost of a run; equal tiles share it.
struct RunCost {
  Energy compute; ///< MACs or lane operations
  Energy memory;  ///< on-chip memories
  std::int64_t macs = 0;
  std::string variant; ///< CoreCost::variant
  /// Cycles that the core computes; a run takes longer if streamed operands delay it.
  Cycles latency;
  RunCycles causes{}; ///< their sum is `latency`; without streaming
};

/// Kind of a transfer.
enum class TransferKind : std::uint8_t {
  fetch,      ///< a tensor, or the part that a tile needs, moves to a core that keeps it
  stream,     ///< an operand too large for the core streams while the tile runs
  write_back, ///< a result moves off-chip: it outlives the step, or a later tile reads it there
  /// A tensor is evicted to make room while still needed: off-chip, or to another core.
  spill,
};
std::string_view name_of(TransferKind kind);

/// Route of a transfer through the chip.
struct Route {
  CoreId from;
  std::vector<CoreId> to;    ///< cores that receive the data
  std::vector<LinkId> links; ///< all occupied during a transfer
  /// Per receiver: cycles from the last bit sent to its arrival, over the links to that receiver.
  /// Empty if all links of the chip have latency 0.
  std::vector<std::int64_t> latency;

  /// Latency to one of the receivers, in cycles.
  std::int64_t latency_to(std::size_t receiver) const {
    return latency.empty() ? 0 : latency[receiver];
  }
  /// Largest latency to any receiver, in cycles.
  std::int64_t longest_latency() const {
    return latency.empty() ? 0 : *std::max_element(latency.begin(), latency.end());
  }
  friend bool operator==(const Route&, const Route&) = default;
};

/// A transfer of a tensor, or of a part of it.
struct Transfer {
  Cycles start;
  /// Cycle in which the last bit is sent and the links are free; see Route::latency.
  Cycles end;
  TensorId tensor;
  OpId op;                ///< operator that the transfer is made for and whose energy includes it
  std::uint32_t cost = 0; ///< index into Timeline::transfer_costs
  TransferKind kind = TransferKind::fetch;
};

/// Size and cost of a transfer; transfers of equal size over one route share it.
struct TransferCost {
  std::uint32_t route = 0; ///< index into Timeline::routes
  Bits bits;               ///< size that each receiver gets
  Energy link_energy;
  Energy offchip_energy;
  Energy onchip_energy; ///< top memories read and written
  /// Number of rows opened in the off-chip memory; 0 if opening rows takes no time.
  std::int64_t rows = 0;
};

/// Residency (stay) of a tensor, or of a part of it, in a memory. A tensor may be in several
/// memories at once.
struct ResidencyInterval {
  Cycles start;
  Cycles end; ///< kKept if the tensor is still there after the step
  TensorId tensor;
  std::uint32_t place = 0; ///< index into Timeline::places

  /// Value of `end` for a tensor that is still there after the step.
  static constexpr Cycles kKept{std::numeric_limits<std::int64_t>::max()};
};
/// An amount of space in a memory.
struct MemorySlot {
  /// Core whose top memory it is (first of a sharing group), or the off-chip core.
  CoreId memory;
  Bits bits;
  friend bool operator==(const MemorySlot&, const MemorySlot&) = default;
};

/// Change of the content of a memory.
struct MemoryEvent {
  Cycles time;
  CoreId memory;
  TensorId tensor;
  Bits delta; ///< negative: freed
};

/// Bytes by owner, indexed by MemoryOwner.
using OwnerBytes = std::array<std::int64_t, kMemoryOwners>;

/// Live bytes by owner at one moment.
struct MemorySample {
  Cycles time;
  OwnerBytes live{}; ///< every live tensor counted once, wherever its copies are
};

/// Time span of a phase. Phases follow each other without gap or overlap. A phase ends with its
/// last tile, but not before the previous phase; the last one ends at the makespan.
struct PhaseSpan {
  Phase phase = Phase::forward;
  Cycles start;
  Cycles end;
};

/// A schedule of up to a million tiles; data that many rows share are stored once and referenced.
struct Timeline {
  bool complete = true;            ///< false: scheduling ended early, and the timeline is empty
  std::vector<TileRun> runs;       ///< sorted by start, then tile
  std::vector<Transfer> transfers; ///< sorted by start
  std::vector<ResidencyInterval> stays; ///< unsorted; see memory_events()
  std::vector<MemorySample> live;       ///< one sample per change
  std::vector<PhaseSpan> phases;        ///< in order; the sum of lengths is the makespan
  Cycles makespan;
  MemorySample peak;           ///< first sample with the largest sum, without offloaded activations
  std::vector<Energy> leakage; ///< per core: leakage of its memories over the makespan

  std::vector<RunCost> costs;
  std::vector<TransferCost> transfer_costs;
  std::vector<Route> routes;
  std::vector<MemorySlot> places;

  const RunCost& cost_of(const TileRun& run) const { return costs[run.cost]; }
  const TransferCost& cost_of(const Transfer& t) const { return transfer_costs[t.cost]; }
  const Route& route_of(const Transfer& t) const { return routes[cost_of(t).route]; }
  const MemorySlot& place_of(const ResidencyInterval& stay) const { return places[stay.place]; }
  Bits bits_of(const Transfer& t) const { return cost_of(t).bits; }
  /// Cycle from which the last receiver has all data of the transfer.
  Cycles arrival_of(const Transfer& t) const {
    return {t.end.value + route_of(t).longest_latency()};
  }
};

/// Cycles of each of `phases`, whose sum is the makespan. Normally, they are the lengths of the
/// spans. If a phase with tiles has length 0, each cycle is shared equally by the phases that run a
/// tile in it. A cycle without a running tile then belongs to the previous phase.
std::vector<Cycles> phase_latencies(const Timeline& timeline, const TrainingGraph& step);

/// Changes of the content of all memories, sorted by time; at equal times, freed tensors precede
/// new ones.
std::vector<MemoryEvent> memory_events(const Timeline& timeline);

/// Energy of a timeline by component.
struct EnergySplit {
  Energy compute;
  Energy onchip_memory;
  Energy links;
  Energy offchip;
  Energy leakage;
  Energy total() const { return compute + onchip_memory + links + offchip + leakage; }
  friend bool operator==(const EnergySplit&, const EnergySplit&) = default;
};
/// Sums the energy of a timeline.
EnergySplit energy_of(const Timeline& timeline);

} // namespace monet

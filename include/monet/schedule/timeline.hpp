// The product of scheduling: who ran what when, every transfer, and which tensor lay where over
// time.
#pragma once

#include "monet/base/ids.hpp"
#include "monet/base/units.hpp"
#include "monet/training/training.hpp"

#include <array>
#include <optional>
#include <string>
#include <vector>

namespace monet {

struct TileRun {
  TileId tile;
  OpId op;
  CoreId core;
  Cycles start;
  Cycles end;     ///< end > start
  Energy compute; ///< MACs or lane operations
  Energy memory;  ///< on-chip memories
  std::int64_t macs = 0;
  std::string variant; ///< CoreCost::variant
};

enum class TransferKind {
  fetch,      ///< a tensor (or the part a tile needs) comes to a core that keeps it
  stream,     ///< an operand too large for the core flows by while the tile runs
  write_back, ///< a result goes off-chip because it is an output or does not fit
  spill,      ///< evicted to make room while still needed
};
std::string_view name_of(TransferKind kind);

struct Transfer {
  TransferKind kind = TransferKind::fetch;
  TensorId tensor;
  OpId op; ///< the operator it is done for; its energy is that operator's
  CoreId from;
  CoreId to;
  Bits bits;
  Cycles start;
  Cycles end;
  std::vector<LinkId> links; ///< all occupied from start to end
  Energy link_energy;
  Energy offchip_energy;
  Energy onchip_energy; ///< top memories read and written
};

/// Change of what a memory holds. One tensor may have copies in several memories.
struct MemoryEvent {
  Cycles time;
  CoreId memory; ///< core whose top memory it is (first of a sharing group), or the off-chip core
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

struct Timeline {
  std::vector<TileRun> runs;       ///< by start, then tile
  std::vector<Transfer> transfers; ///< by start, then order of issue
  std::vector<MemoryEvent> memory; ///< by time
  std::vector<MemorySample> live;  ///< steps; one per change
  std::vector<PhaseSpan> phases;   ///< in order; lengths add up to the makespan
  Cycles makespan;
  MemorySample peak; ///< of the sum over owners; the first of equals
};

/// Sums over everything in the timeline.
struct EnergySplit {
  Energy compute;
  Energy onchip_memory;
  Energy links;
  Energy offchip;
  Energy total() const { return compute + onchip_memory + links + offchip; }
};
EnergySplit energy_of(const Timeline& timeline);

} // namespace monet

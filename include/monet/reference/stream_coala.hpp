// The reference scheduler (Stream's COALA, upstream 303f9dc) to the last cycle: second half of
// `--model stream-coala`. The first half is monet/tiling/stream_tiles.hpp. Semantics, quirks
// included, are in docs/explanation/stream-coala.md.
#pragma once

#include "monet/hardware/chip.hpp"
#include "monet/reference/stream_tiles.hpp"

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace monet::stream {

/// What one tile costs on its core.
struct TileCost {
  double runtime = 0;    ///< cycles; the reference does not round
  double onchip_pj = 0;  ///< array and on-chip memories
  double offchip_pj = 0; ///< off-chip accesses of the streamed operands
  /// Operands that pass by from or to the off-chip memory ("too large"), in the reference's order.
  std::vector<MemoryOperand> streamed;
  /// Bits per cycle that a streamed operand takes of the off-chip link while the tile runs, by
  /// MemoryOperand.
  std::array<std::int64_t, kMemoryOperands> offchip_bandwidth{};

  friend bool operator==(const TileCost&, const TileCost&) = default;
};

struct Costs {
  std::vector<TileCost> classes;
  std::vector<std::uint32_t> of_tile; ///< per tile of the workload, an index into `classes`
  std::vector<Note> notes;            ///< what a file lacked and our own core model gave

  const TileCost& of(std::uint32_t tile) const { return classes[of_tile[tile]]; }
};

/// A tile as it ran.
struct TileRun {
  CoreId core;
  double start = 0; ///< cycles
  double end = 0;
};

/// Use of one link by one tensor.
struct LinkEvent {
  enum class Kind : std::uint8_t {
    transfer, ///< the tensor moves from sender to receiver
    block,    ///< a streamed operand keeps bandwidth while its tile runs
  };
  Kind kind = Kind::transfer;
  LinkId link; ///< of the chip
  CoreId sender;
  CoreId receiver;
  std::uint32_t tensor = 0; ///< of the workload; of a part: the tensor it is cut from
  Bits bits;                ///< of the part
  double start = 0;         ///< cycles
  double end = 0;
  std::int64_t bandwidth = 0; ///< bits per cycle booked
  double energy_pj = 0; ///< of the link; of a block: off-chip energy of the tensor's first tile
};

/// Why something moved.
enum class Cause : std::uint8_t { offchip, eviction, sink, core_to_core };
inline constexpr std::size_t kCauses = 4;

struct EnergyTerms {
  double onchip_pj = 0;                    ///< tiles
  std::array<double, kCauses> link_pj{};   ///< by Cause
  std::array<double, kCauses> memory_pj{}; ///< by Cause; streamed operands count as offchip
  double total_pj() const;
};

/// The most that an outermost memory held.
struct MemoryPeak {
  std::string memory;        ///< name in the core's file
  std::vector<CoreId> cores; ///< several when shared
  Bits capacity;
  Bits peak;
};

struct Result {
  std::vector<TileRun> runs;     ///< per tile
  std::vector<LinkEvent> events; ///< in order of booking
  EnergyTerms energy;
  double latency = 0; ///< cycles
  std::vector<MemoryPeak> peaks;
  std::vector<Note> notes; ///< where the reference stops, or would; what was done instead
};

/// Schedules every tile. InfeasibleError naming tile, tensor, memory and bits when a tensor cannot
/// be stored; InputError-free: all input was checked by the readers. The workload's own notes are
/// not repeated.
Result schedule(const Workload& workload, const Chip& chip, const Costs& costs);

} // namespace monet::stream

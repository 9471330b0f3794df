// schedule(): the reference scheduler (Stream's COALA, upstream 303f9dc), reproduced to the last
// cycle. It is the second half of `--model stream-coala`; the first is
// monet/reference/stream_tiles.hpp. Semantics, including quirks, are in
// docs/explanation/stream-coala.md.
#pragma once

#include "monet/hardware/chip.hpp"
#include "monet/reference/stream_tiles.hpp"

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace monet::stream {

/// Cost of one tile on its core.
struct TileCost {
  double runtime = 0;    ///< cycles; not rounded, as in the reference
  double onchip_pj = 0;  ///< energy of the array and on-chip memories
  double offchip_pj = 0; ///< energy of off-chip accesses of streamed operands
  /// Operands that are too large for the core and stream from or to the off-chip memory, in the
  /// reference's order.
  std::vector<MemoryOperand> streamed;
  /// Bandwidth of the off-chip link that each streamed operand uses while the tile runs, in bits
  /// per cycle, by MemoryOperand.
  std::array<std::int64_t, kMemoryOperands> offchip_bandwidth{};

  friend bool operator==(const TileCost&, const TileCost&) = default;
};

/// Costs of all tiles of a workload.
struct Costs {
  /// Different costs, each shared by tiles.
  std::vector<TileCost> classes;
  std::vector<std::uint32_t> of_tile; ///< per tile of the workload: index into `classes`
  std::vector<Note> notes; ///< figures that a file lacked and our own core model supplied

  /// Cost of a tile.
  const TileCost& of(std::uint32_t tile) const { return classes[of_tile[tile]]; }
};

/// Execution of one tile.
struct TileRun {
  CoreId core;
  double start = 0; ///< in cycles
  double end = 0;
};

/// Use of one link by one tensor.
struct LinkEvent {
  enum class Kind : std::uint8_t {
    transfer, ///< the tensor moves from sender to receiver
    block,    ///< a streamed operand reserves bandwidth while its tile runs
  };
  Kind kind = Kind::transfer;
  LinkId link; ///< link of the chip
  CoreId sender;
  CoreId receiver;
  /// Tensor of the workload; for a part, the tensor that it is cut from.
  std::uint32_t tensor = 0;
  Bits bits;        ///< size of the part that moves
  double start = 0; ///< in cycles
  double end = 0;
  std::int64_t bandwidth = 0; ///< booked bandwidth, in bits per cycle
  /// Energy of the link; for a block, the off-chip energy of the tensor's first tile.
  double energy_pj = 0;
};

/// Reason for a movement of data.
enum class Cause : std::uint8_t { offchip, eviction, sink, core_to_core };
/// Number of values of Cause.
inline constexpr std::size_t kCauses = 4;

/// Energy of a schedule, in pJ, by component.
struct EnergyTerms {
  double onchip_pj = 0;                  ///< energy of the tiles
  std::array<double, kCauses> link_pj{}; ///< energy of the links, by Cause
  /// Energy of memories, by Cause; streamed operands count as offchip.
  std::array<double, kCauses> memory_pj{};
  /// Sum of all components, in pJ.
  double total_pj() const;
};

/// Maximum occupancy of an outermost memory.
struct MemoryPeak {
  std::string memory;        ///< name in the core's file
  std::vector<CoreId> cores; ///< several for a shared memory
  Bits capacity;
  Bits peak;
};

/// Result of schedule().
struct Result {
  std::vector<TileRun> runs;     ///< per tile of the workload
  std::vector<LinkEvent> events; ///< in booking order
  EnergyTerms energy;
  double latency = 0; ///< in cycles
  std::vector<MemoryPeak> peaks;
  std::vector<Note> notes; ///< cases where the reference stops or would stop, and our action
};

/// Schedules every tile of a workload. Throws InfeasibleError with tile, tensor, memory and bits if
/// a tensor cannot be stored. It throws no InputError, since the readers have checked all input.
/// The workload's own notes are not repeated.
Result schedule(const Workload& workload, const Chip& chip, const Costs& costs);

} // namespace monet::stream

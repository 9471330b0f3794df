// What no schedule of given tiles on given cores can beat.
#pragma once

#include "monet/hardware/chip.hpp"
#include "monet/schedule/timeline.hpp"
#include "monet/tiling/tiling.hpp"

#include <cstdint>
#include <span>
#include <vector>

namespace monet {

/// Lower bounds on the latency and on the traffic of the off-chip memory. They hold for every
/// order, with any amount of memory and for any sharing of links; the cost of a tile and what it
/// reads and writes are given.
struct Bounds {
  Cycles critical_path; ///< longest chain of tiles that read each other's results; no transfers
  Cycles busiest_core;  ///< most cycles that the tiles of one core compute
  CoreId core;          ///< which
  Cycles busiest_links; ///< most cycles for what must get into, or out of, one core's memory over
                        ///< all its links together
  CoreId links_of;      ///< whose
  Cycles offchip_port;  ///< for what must pass the off-chip memory's ports
  Bits offchip_read;    ///< every element of a tensor without producer that somebody reads, once
  Bits offchip_written; ///< every element of what the step leaves behind, once

  /// The largest.
  Cycles latency() const;
};

/// The bounds for the tiles of a timeline, with the latencies of their core costs. n log n.
Bounds lower_bounds(const Timeline& timeline, const TileGraph& tiles, const TrainingGraph& step,
                    const Chip& chip);

/// No more than the number of different elements of a tensor of this shape that the box of loops
/// touches through the access.
std::int64_t touched_elements(const Access& access, std::span<const Interval> box,
                              std::span<const std::int64_t> shape);

/// Per tensor, what the off-chip memory is at least asked for in any schedule: of tensors that
/// nobody makes the bits that are read, of what the step leaves behind the bits that are written,
/// each element once; 0 for others.
struct CompulsoryTraffic {
  std::vector<std::int64_t> read;
  std::vector<std::int64_t> written;
};
CompulsoryTraffic compulsory_traffic(const Graph& graph);

/// Tensors that must be in the off-chip memory when the step is over: graph outputs and everything
/// that shares storage with a parameter, buffer or optimiser state. One flag per tensor.
std::vector<bool> required_offchip(const Graph& graph);

/// Cycles that these bits take at least through the ports of the off-chip memory.
std::int64_t port_cycles(const OffchipPort& port, std::int64_t read, std::int64_t written);

/// Bits that the timeline's transfers read from the off-chip memory and write to it.
struct OffchipTotals {
  Bits read;
  Bits written;
};
OffchipTotals offchip_traffic(const Timeline& timeline, const Chip& chip);

} // namespace monet

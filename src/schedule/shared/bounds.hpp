// lower_bounds(): lower bounds on schedules of given tiles on given cores, and related figures of
// off-chip traffic.
#pragma once

#include "monet/hardware/chip.hpp"
#include "monet/schedule/timeline.hpp"
#include "monet/tiling/tiling.hpp"

#include <cstdint>
#include <span>
#include <vector>

namespace monet {

/// Lower bounds on the latency and the off-chip traffic of a schedule. They hold for every order,
/// any amount of memory and any sharing of links, given the cost, inputs and outputs of each tile.
struct Bounds {
  Cycles critical_path; ///< longest chain of dependent tiles, without transfers
  Cycles busiest_core;  ///< maximum cycles that the tiles of one core compute
  CoreId core;          ///< core with that maximum
  /// Maximum cycles to move the required data into, or out of, one core's memory over all its links
  /// together.
  Cycles busiest_links;
  CoreId links_of; ///< core with that maximum
  /// Cycles for the compulsory traffic through the ports of the off-chip memory.
  Cycles offchip_port;
  /// Each element that is read of tensors without producer, counted once.
  Bits offchip_read;
  /// Each element of the step's results, counted once.
  Bits offchip_written;

  /// Lower bound on the latency: the largest of the cycle bounds.
  Cycles latency() const;
};

/// Computes the bounds for the tiles of a timeline, with the latencies of their core costs. Takes
/// O(n log n) time.
Bounds lower_bounds(const Timeline& timeline, const TileGraph& tiles, const TrainingGraph& step,
                    const Chip& chip);

/// Lower bound on the number of different elements of a tensor of this shape that the iterations of
/// the box access.
std::int64_t touched_elements(const Access& access, std::span<const Interval> box,
                              std::span<const std::int64_t> shape);

/// Minimum off-chip traffic per tensor, in bits, in any schedule; each element counts once. Tensors
/// without producer have the bits that are read, results of the step have the bits that are
/// written, and others have 0.
struct CompulsoryTraffic {
  std::vector<std::int64_t> read;
  std::vector<std::int64_t> written;
};
/// Computes the compulsory traffic of a graph.
CompulsoryTraffic compulsory_traffic(const Graph& graph);

/// Tensors that must be in the off-chip memory after the step, as one flag per tensor. They are
/// graph outputs and tensors that share storage with a parameter, buffer or optimiser state.
std::vector<bool> required_offchip(const Graph& graph);

/// Total off-chip traffic of a timeline.
struct OffchipTotals {
  Bits read;
  Bits written;
};
/// Bits that the timeline's transfers read from and write to the off-chip memory.
OffchipTotals offchip_traffic(const Timeline& timeline, const Chip& chip);

} // namespace monet

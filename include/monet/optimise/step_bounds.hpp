// What no schedule of a step on a chip can beat, whatever is allocated, split, fused, tiled and
// ordered. See docs/explanation/step-bounds.md for why each part holds.
#pragma once

#include "monet/hardware/chip.hpp"
#include "monet/model/figures.hpp"
#include "monet/training_graph/training.hpp"

#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

namespace monet {

struct StepBoundOptions {
  /// Nothing is made twice: no recomputed halos (Halo::cached) and no recomputation beyond what the
  /// step has as operators. Off: bounds that hold with both.
  bool made_once = true;
  /// No operator runs again because its result was dropped: what is made is kept for its last
  /// reader, as with recomputed halos.
  bool kept = true;
  /// Per operator, the cores that it may run on; empty: all that can, or whole vector empty. A
  /// mapping that sends element-wise work to other cores must be told here.
  std::vector<std::vector<CoreId>> cores;
  /// So many operators at most, spread over the step, are looked at as points that everything
  /// before must have passed; more give tighter bounds. Large steps have fewer.
  std::size_t separators = 512;
  /// Bounds of energy hold for schedules of no more tiles, as the accesses of each tile to wide
  /// memories are counted in whole words, rounded down.
  double max_tiles = std::numeric_limits<double>::infinity();
  /// Traffic holds for every chip whose memories hold no more than this, or than `chip`, together.
  Bits onchip{0};
};

struct StepBounds {
  // Least cycles of:
  double work = 0; ///< all cores together
  double path = 0; ///< what must follow each other, stretches of work between points all must pass
  double offchip = 0; ///< ports of the off-chip memory and links to it
  double phases = 0;  ///< work or traffic before a point, and after it

  Bits compulsory_read;    ///< each element of inputs, parameters and states that is read, once
  Bits compulsory_written; ///< each element of what the step leaves behind, once
  /// Beyond it: what is live at `separator` and has no room on the chip is read again, and what was
  /// made in this step is written before that.
  Bits spilled_read;
  Bits spilled_written;
  std::optional<OpId> separator; ///< where most is live; none where nothing spills
  /// Live at some moment, as Timeline::peak counts: what lasts, and what was begun before a point
  /// and is read after it (without `kept`: of that, only what nothing makes). Does not
  /// depend on the chip.
  std::int64_t peak_memory_bytes = 0;

  double compute_pj = 0; ///< products and lane operations
  double memory_pj = 0;  ///< on-chip, of lanes, and of products at their best mapping
  double links_pj = 0;   ///< of the traffic above
  double offchip_pj = 0;
  double leakage_pj = 0; ///< over latency()

  Cycles latency() const;
  Bits offchip_read() const { return compulsory_read + spilled_read; }
  Bits offchip_written() const { return compulsory_written + spilled_written; }
  /// Before the rounding of a schedule's ledger (1/128 pJ a run or transfer).
  double energy_pj() const { return compute_pj + memory_pj + links_pj + offchip_pj + leakage_pj; }
  double edp() const { return energy_pj() * static_cast<double>(latency().value); }
  /// The least that schedule() can come to, whose ledger rounds the energy of every run.
  double least(Objective objective) const;
};

/// Bits that the outermost memories of all cores hold together.
double onchip_bits(const Chip& chip);

/// Bounds for a step whose views are folded. They hold for schedule() with any tiles that
/// make_tiles() or a search may give it, with any core cost options. InfeasibleError naming an
/// operator that no core can run. Where check_stop() would end it, the bounds are what is known by
/// then.
StepBounds step_bounds(const TrainingGraph& step, const Chip& chip,
                       const StepBoundOptions& options = {});

} // namespace monet

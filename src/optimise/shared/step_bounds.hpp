// step_bounds(): lower bounds on the figures of any schedule of a step on a chip, whatever the
// allocation, splits, fusion, tiles and order. Proofs are in docs/explanation/step-bounds.md.
#pragma once

#include "monet/hardware/chip.hpp"
#include "monet/model/model_step.hpp"
#include "monet/training_graph/training.hpp"

#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

namespace monet {

/// Options of step_bounds().
struct StepBoundOptions {
  /// Whether no element is computed twice: no recomputed halos (Halo::cached), and no recomputation
  /// except the step's own operators. false: the bounds hold with both.
  bool made_once = true;
  /// Whether no operator runs again because its result was dropped. A result is then kept until its
  /// last reader, as with recomputed halos.
  bool kept = true;
  /// Cores per operator; an empty entry allows all cores that can run it, an empty vector all of
  /// them for every operator. A mapping that moves element-wise operators to other cores must be
  /// reflected here.
  std::vector<std::vector<CoreId>> cores;
  /// Maximum number of separators, operators spread over the step that divide it into a part before
  /// and a part after. More separators yield tighter bounds. Large steps have fewer.
  std::size_t separators = 512;
  /// Maximum number of tiles of the schedules for which energy bounds hold. Each tile's accesses to
  /// wide memories are counted in whole words, rounded down.
  double max_tiles = std::numeric_limits<double>::infinity();
  /// On-chip memory in total; traffic bounds hold for every chip with at most this, or at most that
  /// of `chip`.
  Bits onchip{0};
};

/// Lower bounds on the figures of any schedule of a step on a chip.
struct StepBounds {
  /// Minimum cycles for the work of all cores together.
  double work = 0;
  /// Minimum cycles for a chain of dependent operators, with stretches of work between separators.
  double path = 0;
  /// Minimum cycles for the ports of the off-chip memory and the links to it.
  double offchip = 0;
  /// Minimum cycles for the work or traffic before a separator plus those after it.
  double phases = 0;

  /// Each element of inputs, parameters and states that is read, counted once.
  Bits compulsory_read;
  /// Each element of the step's results, counted once.
  Bits compulsory_written;
  /// Reads in addition to the compulsory ones: tensors live at `separator` that do not fit on the
  /// chip are read again.
  Bits spilled_read;
  /// Writes in addition to the compulsory ones: a spilled tensor that the step produced is written
  /// before it is read again.
  Bits spilled_written;
  /// Operator at which the spilled traffic is largest; nullopt if nothing spills.
  std::optional<OpId> separator;
  /// Lower bound on the peak of live bytes, as in Timeline::peak. It counts persistent tensors, and
  /// tensors that are produced before a separator and read after it (without `kept`: of these, only
  /// tensors without a producer). It does not depend on the chip.
  std::int64_t peak_memory_bytes = 0;

  double compute_pj = 0; ///< products and lane operations
  /// On-chip memories, for lane operations and for products at their best mapping.
  double memory_pj = 0;
  double links_pj = 0; ///< for the traffic above
  double offchip_pj = 0;
  double leakage_pj = 0; ///< over latency()

  /// Lower bound on the latency: the largest of the cycle bounds.
  Cycles latency() const;
  Bits offchip_read() const { return compulsory_read + spilled_read; }
  Bits offchip_written() const { return compulsory_written + spilled_written; }
  /// Lower bound on the energy before a schedule's ledger is rounded (1/128 pJ per run or
  /// transfer).
  double energy_pj() const { return compute_pj + memory_pj + links_pj + offchip_pj + leakage_pj; }
  /// Lower bound on the product of energy and latency.
  double edp() const { return energy_pj() * static_cast<double>(latency().value); }
  /// Lower bound on the objective of schedule(), whose ledger rounds the energy of every run.
  double least(Objective objective) const;
};

/// Size of the outermost memories of all cores together, in bits.
double onchip_bits(const Chip& chip);

/// Computes lower bounds for a step whose views are folded. They hold for schedule() with any tiles
/// from make_tiles() or a search, and with any core-cost options. Throws InfeasibleError naming an
/// operator that no core can run. If check_stop() interrupts it, the bounds found until then are
/// returned.
StepBounds step_bounds(const TrainingGraph& step, const Chip& chip,
                       const StepBoundOptions& options = {});

} // namespace monet

// model_step(): models a training step on a chip by tiling, core costs and scheduling, and returns
// its figures. Commands, searches and explorations all call it.
// Example:
//   StepFigures model_fused(const TrainingGraph& step, const Chip& chip) {
//     StepOptions options;
//     options.tiling.mode = TilingMode::fused;
//     options.schedule.priority = Priority::memory;
//     CoreCostCache costs;
//     return model_step(step, chip, options, {costs}).figures;
//   }
#pragma once

#include "monet/base/objective.hpp"
#include "monet/base/stage.hpp"
#include "monet/schedule/schedule.hpp"
#include "monet/schedule/timeline.hpp"
#include "monet/tiling/allocation.hpp"
#include "monet/tiling/tiling.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <vector>

namespace monet {

/// Figures of a step, or lower bounds of them. Code that compares, stores or sends designs keeps
/// only the fields of totals().
struct StepFigures {
  /// Length of the whole step, in cycles.
  std::int64_t latency_cycles = 0;
  double energy_pj = 0;               ///< of all components, with leakage
  std::int64_t peak_memory_bytes = 0; ///< maximum of bytes live at a time, each tensor counted once
  std::int64_t offchip_bits = 0;      ///< read from and written to the off-chip memory
  bool feasible = true; ///< false: an operand does not fit or cannot be moved; ignore other figures

  EnergySplit energy;            ///< energy by component
  std::int64_t stored_bytes = 0; ///< size of activations that the backward phase reads
  /// Number of tiles that were scheduled.
  std::int64_t tiles = 0;
  /// Figures of one phase of the step.
  struct OfPhase {
    std::int64_t cycles = 0; ///< from the end of the previous phase to the end of this one
    Energy energy;           ///< of the phase's operators, without leakage
    /// Bits that the phase reads from and writes to the off-chip memory.
    std::int64_t offchip_bits = 0;
    friend bool operator==(const OfPhase&, const OfPhase&) = default;
  };
  std::array<OfPhase, 4> phases; ///< forward, loss, backward with recomputation, update

  /// Value to minimise, in the objective's unit; infinite for a step that is not feasible. Throws
  /// InternalError for area and power, which belong to a chip and not to a step.
  double value(Objective objective) const;
  /// Copy with latency, energy, peak memory and feasibility alone.
  StepFigures totals() const { return {latency_cycles, energy_pj, peak_memory_bytes, 0, feasible}; }
  friend bool operator==(const StepFigures&, const StepFigures&) = default;
};

/// Computes the figures of a complete timeline.
StepFigures figures_of(const Timeline& timeline, const TileGraph& tiles, const TrainingGraph& step,
                       const Chip& chip);

/// A register file or small memory that an operand bypasses because one element does not fit.
struct BypassedMemory {
  std::string memory; ///< name in the core's file
  std::string core;   ///< first core of the chip that runs such a tile
  /// Operand that bypasses the memory.
  MemoryOperand operand = MemoryOperand::I1;
  std::int64_t element_bits = 0; ///< bits per element, or per partial sum if kept there
  std::int64_t memory_bits = 0;  ///< capacity of the memory, less than one element
  std::int64_t operators = 0;    ///< number of operators that bypass it
  OpId first;                    ///< first of these operators
};

/// Finds the bypassed memories, in the order of their first operators. A bypassing operand moves to
/// and from the memory above for every use, which costs energy and possibly time. The cause is an
/// element type wider than the chip was designed for.
std::vector<BypassedMemory> bypassed_memories(const TrainingGraph& step, const TileGraph& tiles,
                                              const Chip& chip);

/// Options of model_step().
struct StepOptions {
  TilingOptions tiling;
  ScheduleOptions schedule;
  /// Name of the step in stage reports and InfeasibleError messages, such as "training"; may be
  /// empty.
  std::string name;
  /// Maximum number of tiles; model_step() throws InfeasibleError for a step with more.
  std::size_t max_tiles = std::numeric_limits<std::size_t>::max();
};

/// Objects that several calls of model_step() share. All but `costs` may be null.
struct ModelContext {
  /// Core costs found so far, read and extended.
  CoreCostCache& costs;
  /// Context in which tiling and scheduling run as stages: it handles stop requests, timing and
  /// checks.
  StageContext* stages = nullptr;
  /// Tile costs found so far, for the same step, chip and core-cost options; speeds up repeated
  /// calls.
  TileCostCache* tile_costs = nullptr;
  /// Tiling plan for the same step, chip and tiling options; only their allocation may differ.
  const TilePlanner* planner = nullptr;
  /// Called with the costs of the tiles. Returns true if the schedule's figures are known already,
  /// in which case model_step() makes no schedule.
  std::function<bool(const TileCosts&)> known;
};

/// Result of model_step().
struct ModelledStep {
  TileGraph tiles;
  /// Schedule of the tiles; incomplete if `known` returned true or options.schedule.hopeless ended
  /// it.
  Timeline timeline;
  /// Figures of the timeline; valid only if it is complete.
  StepFigures figures;
};

/// Models one step, whose views are folded, on a chip. The result does not depend on the caches or
/// the number of jobs. Throws InfeasibleError where make_tiles(), tile_costs() or schedule() does.
ModelledStep model_step(const TrainingGraph& step, const Chip& chip, const StepOptions& options,
                        const ModelContext& context);

/// Models the best answer of a search again. Throws InternalError if its figures differ from
/// `claimed`, or if the tiles or the timeline violate an invariant.
void verify_figures(const StepFigures& claimed, const TrainingGraph& step, const Chip& chip,
                    const StepOptions& options, const ModelContext& context);

} // namespace monet

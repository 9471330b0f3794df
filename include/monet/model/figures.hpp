// StepFigures: latency, energy, memory and off-chip traffic of a modelled training step, computed
// from its timeline.
#pragma once

#include "monet/base/objective.hpp"
#include "monet/schedule/timeline.hpp"
#include "monet/tiling/tiling.hpp"

#include <array>
#include <cstdint>
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

} // namespace monet

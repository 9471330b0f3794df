// What a modelled step comes to.
#pragma once

#include "monet/base/objective.hpp"
#include "monet/schedule/timeline.hpp"
#include "monet/tiling/tiling.hpp"

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace monet {

/// Figures of a step, or lower bounds of them. Whoever compares, stores or sends designs keeps what
/// totals() has.
struct StepFigures {
  std::int64_t latency_cycles = 0;
  double energy_pj = 0;               ///< of all components
  std::int64_t peak_memory_bytes = 0; ///< most bytes live at a time, every tensor once
  std::int64_t offchip_bits = 0;      ///< read from and written to the off-chip memory
  bool feasible = true; ///< false: an operand cannot fit or be brought; nothing else counts

  EnergySplit energy;            ///< by component
  std::int64_t stored_bytes = 0; ///< of activations that the backward phase reads
  std::int64_t tiles = 0;
  struct OfPhase {
    std::int64_t cycles = 0; ///< from the end of the phase before to its own
    Energy energy;           ///< of its operators, without leakage
    std::int64_t offchip_bits = 0;
    friend bool operator==(const OfPhase&, const OfPhase&) = default;
  };
  std::array<OfPhase, 4> phases; ///< forward, loss, backward with recomputation, update

  /// What is minimised, in the objective's unit; infinite for what is not feasible. Area and power
  /// are a chip's: InternalError.
  double value(Objective objective) const;
  /// Latency, energy and peak memory alone.
  StepFigures totals() const { return {latency_cycles, energy_pj, peak_memory_bytes, 0, feasible}; }
  friend bool operator==(const StepFigures&, const StepFigures&) = default;
};

/// Of a complete timeline.
StepFigures figures_of(const Timeline& timeline, const TileGraph& tiles, const TrainingGraph& step,
                       const Chip& chip);

/// Register files and small memories that operands pass by because one element does not fit.
struct BypassedMemory {
  std::string memory; ///< its name in the core's file
  std::string core;   ///< the first core of the chip that runs such a tile
  MemoryOperand operand = MemoryOperand::I1;
  std::int64_t element_bits = 0; ///< of partial sums where those stay in the memory
  std::int64_t memory_bits = 0;  ///< of the memory, less than one element
  std::int64_t operators = 0;    ///< that run like this
  OpId first;                    ///< of them
};

/// In the order of the first operator. What passes by is moved to and from the memory above for
/// every use, which costs energy and may cost time: a wider type than the chip was made for.
std::vector<BypassedMemory> bypassed_memories(const TrainingGraph& step, const TileGraph& tiles,
                                              const Chip& chip);

} // namespace monet

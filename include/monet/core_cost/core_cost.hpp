// Cost of one operator tile on one core: cycles, energy by memory level, traffic to and from the
// off-chip memory.
//
// The array model is ZigZag's (spatial mapping, uneven memory allocation, stalls per port; energy
// with fractional and latency with integer unrolling). Vector cores run element-wise work on lanes
// through the same memories.
#pragma once

#include "monet/base/units.hpp"
#include "monet/core_cost/options.hpp"
#include "monet/core_cost/problem.hpp"
#include "monet/hardware/core.hpp"
#include "monet/hardware/imc_array.hpp"

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace monet {

/// One loop of a mapping.
struct MappedLoop {
  std::uint32_t dim = 0; ///< index into CoreProblem::dims
  double size = 1;       ///< fractional if an unrolling does not divide the loop
};

/// Loops that are unrolled over the dims of a core's array.
struct SpatialMapping {
  std::vector<std::vector<MappedLoop>> unrolled; ///< loops per array dim
};

/// Temporal loops per operand and memory level, from the lowest level up, as the memories were
/// filled. Loops just outside a level's boundary that do not index the operand count as inside it.
struct TemporalMapping {
  std::vector<MappedLoop> order;                                ///< innermost first
  std::vector<std::vector<std::vector<MappedLoop>>> by_operand; ///< [operand][level]
};

/// Energy at one memory level for one operand, with its number of accesses.
struct LevelEnergy {
  std::string memory;
  std::size_t operand = 0; ///< index into CoreProblem::operands
  Picojoules energy;
  std::array<std::int64_t, kDirections> accesses{}; ///< by Direction, in words of bandwidth_max
};

/// Cycles of an array core by cause, before truncation. They can be fractional because ZigZag's
/// loading shares spare bandwidth.
struct LatencyParts {
  double ideal_temporal = 0; ///< iterations of the temporal loops
  double instructions = 0;   ///< further cycles of processors and kernels, see CoreProgram
  double stall = 0;          ///< waiting for on-chip ports while computing
  double onload = 0;         ///< before the first MAC
  double offload = 0;        ///< after the last MAC
  double total() const { return ideal_temporal + instructions + stall + onload + offload; }
  /// total(), rounded down; throws InfeasibleError beyond 2^53 cycles.
  Cycles whole() const;
};

/// Extent of a search in a space of mappings: space = visited + pruned.
struct SearchEffort {
  double space = 0;         ///< orders of the temporal loops, over all unrollings considered
  std::int64_t visited = 0; ///< fully evaluated
  double pruned = 0;        ///< proven equal to a visited one, or not better
  bool exact = true;        ///< every skipped order was pruned by such a proof
};

/// Work and energy of an array that computes in memory. For a problem computed in parts, rows and
/// columns are those of the part that CoreCost::spatial describes.
struct ImcCost {
  ImcWork work;
  ImcParts energy_pj; ///< CoreCost::compute_energy by part
};

/// Cost of a problem on a core, with its mapping.
struct CoreCost {
  Cycles latency;     ///< compute and on-chip stalls, without waiting for off-chip transfers
  LatencyParts parts; ///< latency = floor(parts.total())
  Cycles ideal;       ///< MACs or lane operations divided by all lanes, rounded up
  /// Variant of a scattering problem: "scatter", "decomposed" or "zero-inserted"; "gather" if the
  /// last two coincide because the stride is 1. Empty for other problems.
  std::string variant;
  std::int64_t macs_executed = 0; ///< includes MACs with inserted zeros and padding
  double spatial_utilisation = 0;
  Picojoules compute_energy;
  std::optional<ImcCost> imc;
  Picojoules memory_energy;
  std::vector<LevelEnergy> levels;
  std::vector<OffchipTraffic> offchip; ///< traffic per operand; zero unless ProblemOperand::offchip
  std::vector<Bits> resident;          ///< bits per operand in the core's top memory while running
  /// Spatial mapping; for a decomposed problem, that of the sub-convolution with the most MACs. Its
  /// loops over dY, and those in a gather and with inserted zeros, run over elements of dX.
  SpatialMapping spatial;
  TemporalMapping temporal;
  SearchEffort effort;
  /// Lower bound on the latency of any mapping in the searched space, in cycles.
  double latency_bound = 0;
  double energy_bound = 0; ///< lower bound on energy, pJ

  Picojoules energy() const { return compute_energy + memory_energy; }
};

/// Finds the best mapping of `problem` on `core` for the objective. Ties go to the first one in
/// enumeration order. Throws InfeasibleError naming operand, memory and bits if the smallest piece
/// of an operand does not fit.
CoreCost core_cost(const CoreProblem& problem, const Core& core,
                   const CoreCostOptions& options = {});

/// Cache of core costs: solves each pair of problem and core once. Thread-safe; results do not
/// depend on the order of requests.
class CoreCostCache {
public:
  CoreCostCache();
  ~CoreCostCache();
  CoreCostCache(const CoreCostCache&) = delete;
  CoreCostCache& operator=(const CoreCostCache&) = delete;

  /// Cost of a problem on a core. The reference stays valid for the lifetime of the cache.
  const CoreCost& get(const CoreProblem& problem, const Core& core, const CoreCostOptions& options);
  /// Number of different problems solved, including variants of scattering ones.
  std::size_t solved() const;
  std::size_t asked() const;

private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// Canonical bytes of the arguments of core_cost(): equal bytes imply an equal result, including
/// all indices. They exclude offsets and names of loops that neither the core's dataflow nor the
/// options mention (but not the alphabetical order of names).
std::string signature(const CoreProblem& problem, const Core& core, const CoreCostOptions& options);
/// Canonical bytes of one argument; those of a core exclude its name.
std::string signature(const CoreProblem& problem);
std::string signature(const Core& core);
std::string signature(const OffchipRate& rate);
std::string signature(const ModelChoices& model);
/// Whether the core's kind and its operator lists allow it to run such an operator.
bool can_run(const Core& core, ComputeKind compute, std::string_view op_type);

} // namespace monet

// What one operator tile costs on one core: cycles, energy by memory level, traffic to and from the
// off-chip memory.
//
// The array model is ZigZag's (spatial mapping, uneven memory allocation, stalls per port; energy
// with float and latency with integer unrolling). Vector cores run element-wise work on lanes
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

/// One loop of a mapping, innermost first.
struct MappedLoop {
  std::uint32_t dim = 0; ///< index into CoreProblem::dims
  double size = 1;       ///< fractional when an unrolling does not divide
};

struct SpatialMapping {
  std::vector<std::vector<MappedLoop>> unrolled; ///< per array dim
};

/// Loops per operand and memory level, bottom-up, as memories were filled. Loops just outside a cut
/// that do not touch the operand run inside when costs are counted.
struct TemporalMapping {
  std::vector<MappedLoop> order;                                ///< innermost first
  std::vector<std::vector<std::vector<MappedLoop>>> by_operand; ///< [operand][level]
};

/// Energy at one memory level for one operand.
struct LevelEnergy {
  std::string memory;
  std::size_t operand = 0; ///< index into CoreProblem::operands
  Picojoules energy;
  std::array<std::int64_t, kDirections> accesses{}; ///< by Direction, in words of bandwidth_max
};

/// Where the cycles of an array core go, before truncation. ZigZag's loading shares spare
/// bandwidth, which gives fractions.
struct LatencyParts {
  double ideal_temporal = 0; ///< iterations of the temporal loops
  double instructions = 0;   ///< beyond those: of processors and kernels, see CoreProgram
  double stall = 0;          ///< waiting for on-chip ports while computing
  double onload = 0;         ///< before the first MAC
  double offload = 0;        ///< after the last MAC
  double total() const { return ideal_temporal + instructions + stall + onload + offload; }
  /// total(), rounded down. InfeasibleError beyond 2^53 cycles.
  Cycles whole() const;
};

/// How much of a space of mappings a search went through: space = visited + pruned.
struct SearchEffort {
  double space = 0;         ///< orders of the temporal loops, over all unrollings considered
  std::int64_t visited = 0; ///< evaluated completely
  double pruned = 0;        ///< shown to equal a visited one, or not to be better
  bool exact = true;        ///< nothing was left out without such a reason
};

/// What an array that computes in memory does for a problem. Of one that is computed in parts: the
/// rows and columns of the part that CoreCost::spatial is of.
struct ImcCost {
  ImcWork work;
  ImcParts energy_pj; ///< CoreCost::compute_energy by part
};

struct CoreCost {
  Cycles latency;     ///< compute and on-chip stalls, without waiting for off-chip transfers
  LatencyParts parts; ///< latency = floor(parts.total())
  Cycles ideal;       ///< MACs or lane operations over all lanes, rounded up
  /// Of a problem that scatters: "scatter", "decomposed" or "zero-inserted"; "gather" is what the
  /// last two come to without a stride. Else empty.
  std::string variant;
  std::int64_t macs_executed = 0; ///< those with inserted zeros and with padding included
  double spatial_utilisation = 0;
  Picojoules compute_energy;
  std::optional<ImcCost> imc;
  Picojoules memory_energy;
  std::vector<LevelEnergy> levels;
  std::vector<OffchipTraffic> offchip; ///< per operand; zero unless ProblemOperand::offchip
  std::vector<Bits>
      resident; ///< per operand: bits it occupies in the core's top memory while running
  /// Of a decomposed problem: that of the sub-convolution with the most MACs. Loops over dY then
  /// run over elements of dX, in a gather and with inserted zeros too.
  SpatialMapping spatial;
  TemporalMapping temporal;
  SearchEffort effort;
  /// No mapping of the problem in the searched space has less latency, or less energy.
  double latency_bound = 0;
  double energy_bound = 0; ///< pJ

  Picojoules energy() const { return compute_energy + memory_energy; }
};

/// The best mapping of `problem` on `core` for the objective. Ties keep the first in enumeration
/// order. InfeasibleError naming operand, memory and bits when an operand's smallest piece does not
/// fit.
CoreCost core_cost(const CoreProblem& problem, const Core& core,
                   const CoreCostOptions& options = {});

/// Solves each (problem, core) once. Safe to share between threads; results do not depend on who
/// asks first.
class CoreCostCache {
public:
  CoreCostCache();
  ~CoreCostCache();
  CoreCostCache(const CoreCostCache&) = delete;
  CoreCostCache& operator=(const CoreCostCache&) = delete;

  /// Reference stays valid as long as the cache.
  const CoreCost& get(const CoreProblem& problem, const Core& core, const CoreCostOptions& options);
  /// Different problems solved, forms of scattering ones included.
  std::size_t solved() const;
  std::size_t asked() const;

private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// Canonical bytes of a question to core_cost(): equal bytes, equal answer to the last index. What
/// cannot change the answer is left out: names of loops that neither the core's dataflow nor the
/// options mention (but not their alphabetical order), offsets.
std::string signature(const CoreProblem& problem, const Core& core, const CoreCostOptions& options);
/// Bytes of its parts; those of a core are without its name.
std::string signature(const CoreProblem& problem);
std::string signature(const Core& core);
std::string signature(const OffchipRate& rate);
std::string signature(const ModelChoices& model);
/// True when the core's kind and lists let it run such an operator.
bool can_run(const Core& core, ComputeKind compute, std::string_view op_type);

} // namespace monet

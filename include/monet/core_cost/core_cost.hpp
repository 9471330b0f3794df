// What one operator tile costs on one core: cycles, energy by memory level, traffic to and from the
// off-chip memory.
//
// The array model is ZigZag's (spatial mapping, uneven memory allocation, stalls per port; energy
// with float and latency with integer unrolling). Vector cores run element-wise work on lanes
// through the same memories.
#pragma once

#include "monet/base/units.hpp"
#include "monet/hardware/chip.hpp"
#include "monet/hardware/core.hpp"
#include "monet/workload/loop_nest.hpp"

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace monet {

/// One operand of a problem. Names of tensors are gone: only what decides the cost is left, so that
/// equal problems compare equal wherever they come from.
struct ProblemOperand {
  AccessMode mode = AccessMode::read;
  MemoryOperand memory = MemoryOperand::I1;
  std::vector<AxisExpr> axes;
  std::vector<std::int64_t> extents; ///< of the tensor region, for clipping; same length as axes
  std::int64_t bits = 32;            ///< per element as stored
  std::int64_t partial_bits = 32;    ///< per partial sum (outputs only)
  int passes = 1;
  bool opaque = false;
  /// Does not fit in the core's top memory: streamed from or to the off-chip memory. An output that
  /// stays must fit at partial_bits where the mapping keeps partial sums in that memory.
  bool offchip = false;

  friend bool operator==(const ProblemOperand&, const ProblemOperand&) = default;
};

struct CoreProblem {
  ComputeKind compute = ComputeKind::mac;
  std::vector<LoopDim> dims; ///< sizes of the tile
  std::vector<ProblemOperand> operands;
  VectorWork work;

  friend bool operator==(const CoreProblem&, const CoreProblem&) = default;
};

enum class Objective { latency, energy, edp };

/// Traffic of one operand with the off-chip memory.
struct OffchipTraffic {
  Bits read;
  Bits write;
};

/// What the off-chip memory gives one core while a tile runs, links on the way included. Zeros: not
/// known, and traffic does not count.
struct OffchipRate {
  double read_bits_per_cycle = 0;
  double write_bits_per_cycle = 0;
  bool shared = true; ///< reads and writes take turns
  double read_pj_per_bit = 0;
  double write_pj_per_bit = 0;

  double cycles(const OffchipTraffic& traffic) const;
  double energy_pj(const OffchipTraffic& traffic) const;
};

/// What an objective compares: smaller is better, the second number decides ties.
std::pair<double, double> merit(Objective objective, double latency, double energy);

struct CoreCostOptions {
  Objective objective = Objective::latency;
  int lpf_limit =
      6; ///< prime factors of the temporal loops are merged down to this many (clamped to 1..12)
  /// Keep the core's dataflow (or `spatial`) even where another unrolling costs less. Off: both are
  /// tried.
  bool fixed_dataflow = false;
  /// Spatial mapping when the core has no dataflow: per array dim.
  std::vector<std::vector<Unrolling>> spatial;
  /// For problems with streamed operands: the objective takes the longer of the core's cycles and
  /// the transfer's, and the energy of both.
  OffchipRate offchip;
};

/// One loop of a mapping, innermost first.
struct MappedLoop {
  std::uint32_t dim = 0; ///< index into CoreProblem::dims
  double size = 1;       ///< fractional when an unrolling does not divide
};

struct SpatialMapping {
  std::vector<std::vector<MappedLoop>> unrolled; ///< per array dim
};

/// Loops per operand and memory level, bottom-up.
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
  double stall = 0;          ///< waiting for on-chip ports while computing
  double onload = 0;         ///< before the first MAC
  double offload = 0;        ///< after the last MAC
  double total() const { return ideal_temporal + stall + onload + offload; }
};

struct CoreCost {
  Cycles latency;     ///< compute and on-chip stalls, without waiting for off-chip transfers
  LatencyParts parts; ///< latency = floor(parts.total())
  Cycles ideal;       ///< MACs or lane operations over all lanes, rounded up
  double spatial_utilisation = 0;
  Picojoules compute_energy;
  Picojoules memory_energy;
  std::vector<LevelEnergy> levels;
  std::vector<OffchipTraffic> offchip; ///< per operand; zero unless ProblemOperand::offchip
  std::vector<Bits>
      resident; ///< per operand: bits it occupies in the core's top memory while running
  SpatialMapping spatial;
  TemporalMapping temporal;
  std::int64_t evaluated = 0; ///< temporal mappings looked at

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
  std::size_t solved() const;
  std::size_t asked() const;

private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// Canonical bytes of a core (without its name) or a problem: equal bytes, equal cost.
std::string signature(const CoreProblem& problem);
std::string signature(const Core& core);
std::string signature(const OffchipRate& rate);
/// An operand passes by from or to the off-chip memory.
bool streams(const CoreProblem& problem);

/// True when the core's kind and lists let it run such an operator.
bool can_run(const Core& core, ComputeKind compute, std::string_view op_type);

} // namespace monet

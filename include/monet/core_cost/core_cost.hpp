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

/// Where our model departs from ZigZag 3.8.5: true is ours, false is ZigZag's. Reasons and
/// equations are in docs/core-cost.md.
struct ModelChoices {
  /// The first pass over partial sums starts from nothing, so nothing is read back.
  bool first_partial_sums_free = true;
  /// A slice that is refilled while in use takes twice its size when memories are filled. Off: the
  /// memory is filled, and what then has no second buffer stalls.
  bool reserve_double_buffers = false;
  /// Stalls of different ports add up. Off: they overlap, and the worst port counts.
  bool port_stalls_add = false;
  /// Loading over several pairs of memories with one shared end adds up. Off: the last pair counts.
  bool half_shared_loads_add = true;
  /// Prefetching hides no more than the part of a load that may be hidden. Off: further loads on
  /// the port can push it below, even below zero.
  bool loads_keep_minimum = true;
  /// Axes like 1*OX + 2*FX count distinct elements. Off: the span with its gaps, where loops are
  /// shorter than strides.
  bool gaps_not_fetched = true;
  /// Latency is that of the widest step (32 lanes, when 1000 takes 31.25 on average). Off: of the
  /// truncated one (31).
  bool widest_step = true;
  /// A memory narrower than one element of an operand is passed by. Off: the core cannot run it.
  bool bypass_narrow_memories = true;
  /// Unrollings of our own choice beside the dataflow, see `fixed_dataflow`. Off: the dataflow, and
  /// divisors on array dims it leaves free.
  bool free_unrolling = true;

  static constexpr ModelChoices zigzag_3_8() {
    return {false, false, false, false, false, false, false, false, false};
  }
  friend bool operator==(const ModelChoices&, const ModelChoices&) = default;
};

/// One place in a user's order of the temporal loops. ("*", none) parts what counts from the
/// innermost loop from what counts from the outermost one.
struct OrderedLoop {
  std::string dim;
  std::optional<std::int64_t> size; ///< none = any factor of the dim
  friend bool operator==(const OrderedLoop&, const OrderedLoop&) = default;
};

/// How an output that scatters over shared axes is computed: dX of a convolution, a transposed
/// convolution. Equations are in docs/core-cost.md.
enum class InputGradient {
  best,         ///< whichever costs less; on ties the first of these
  scatter,      ///< as the nest says: products are added where they belong
  decomposed,   ///< one convolution of stride 1 per residue class of the stride
  zero_inserted ///< one convolution of stride 1 over dY with zeros in between
};

struct CoreCostOptions {
  Objective objective = Objective::latency;
  ModelChoices model;
  int lpf_limit =
      6; ///< prime factors of the temporal loops are merged down to this many; 0 = not merged
  /// Keep the core's dataflow (or `spatial`) even where another unrolling costs less; array dims
  /// that it leaves open may take any loop. Off: both are tried.
  bool fixed_dataflow = false;
  /// Spatial mapping when the core has no dataflow: per array dim.
  std::vector<std::vector<Unrolling>> spatial;
  /// Other unrollings tried under `free_unrolling`: those with the most lanes in use, where that
  /// may help. More than kUsualUnrollings: wherever the bound does not exclude them.
  int free_unrollings = kUsualUnrollings;
  static constexpr int kUsualUnrollings = 12;
  /// Layer dims to choose from on array dims that have no unrolling, per array dim; empty = all.
  std::vector<std::vector<std::string>> spatial_hints;
  /// Without `free_unrolling`: so many of the best are searched, and whether several layer dims may
  /// share an array dim.
  int generated_unrollings = 3;
  bool mixed_unrollings = false;
  /// Orders to keep to, innermost first; empty = all. Dims that a problem lacks are left out.
  std::vector<OrderedLoop> temporal_order;
  bool even_allocation = false; ///< all operands are cut at the same loops in a shared memory
  InputGradient input_gradient = InputGradient::best;
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
  double stall = 0;          ///< waiting for on-chip ports while computing
  double onload = 0;         ///< before the first MAC
  double offload = 0;        ///< after the last MAC
  double total() const { return ideal_temporal + stall + onload + offload; }
};

/// How much of a space of mappings a search went through: space = visited + pruned.
struct SearchEffort {
  double space = 0;         ///< orders of the temporal loops, over all unrollings considered
  std::int64_t visited = 0; ///< evaluated completely
  double pruned = 0;        ///< shown to equal a visited one, or not to be better
  bool exact = true;        ///< nothing was left out without such a reason
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

struct FrontPoint;   // monet/core_cost/front.hpp
struct FrontOptions; // likewise

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
  /// core_cost_front(), kept likewise.
  const std::vector<FrontPoint>& front(const CoreProblem& problem, const Core& core,
                                       const CoreCostOptions& options, const FrontOptions& front);
  /// Different problems solved, forms of scattering ones included; fronts do not count.
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
/// An operand passes by from or to the off-chip memory.
bool streams(const CoreProblem& problem);

/// True when the core's kind and lists let it run such an operator.
bool can_run(const Core& core, ComputeKind compute, std::string_view op_type);

} // namespace monet

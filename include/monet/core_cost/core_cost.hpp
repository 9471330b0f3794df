// Cost of one operator tile on one core: cycles, energy by memory level, traffic to and from the
// off-chip memory.
//
// The array model is ZigZag's (spatial mapping, uneven memory allocation, stalls per port; energy
// with fractional and latency with integer unrolling). Vector cores run element-wise work on lanes
// through the same memories.
// Example:
//   double best_energy_delay(const CoreProblem& problem, const Core& core) {
//     CoreCostOptions options;
//     options.objective = Objective::edp;
//     const CoreCost cost = core_cost(problem, core, options);
//     return cost.energy().value * static_cast<double>(cost.latency.value);
//   }
#pragma once

#include "monet/base/objective.hpp"
#include "monet/base/units.hpp"
#include "monet/hardware/core.hpp"
#include "monet/hardware/imc_array.hpp"
#include "monet/workload/loop_nest.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace monet {

/// Traffic of one operand with the off-chip memory.
struct OffchipTraffic {
  Bits read;
  Bits write;
};

/// Bandwidth and energy of the off-chip memory for one core while a tile runs, including the links
/// on the way. Zeros: unknown, so traffic is ignored.
struct OffchipRate {
  double read_bits_per_cycle = 0;
  double write_bits_per_cycle = 0;
  bool shared = true; ///< reads and writes share the bandwidth
  double read_pj_per_bit = 0;
  double write_pj_per_bit = 0;

  double cycles(const OffchipTraffic& traffic) const;
  double energy_pj(const OffchipTraffic& traffic) const;
};

/// Sort key for an objective: smaller is better, and the second number breaks ties.
std::pair<double, double> merit(Objective objective, double latency, double energy);

/// Differences between our model and ZigZag 3.8.5: true selects our model, false ZigZag's. Reasons
/// and equations are in docs/explanation/core-cost-zigzag.md.
struct ModelChoices {
  /// The first pass over partial sums starts from zero and reads nothing back.
  bool first_partial_sums_free = true;
  /// A slice that is refilled while in use reserves twice its size when memories are filled. Off:
  /// the memory is filled completely, and slices without a second buffer stall.
  bool reserve_double_buffers = false;
  /// Stalls of different ports add up. Off: they overlap, and the worst port counts.
  bool port_stalls_add = false;
  /// Loading times over several pairs of memories with one shared end add up. Off: the last pair
  /// counts.
  bool half_shared_loads_add = true;
  /// Prefetching hides at most the part of a load that can be hidden. Off: further loads on the
  /// port can reduce the load time below the rest, even below zero.
  bool loads_keep_minimum = true;
  /// Axes like 1*OX + 2*FX count distinct elements. Off: the whole span counts, with the gaps left
  /// by loops shorter than strides.
  bool gaps_not_fetched = true;
  /// Latency is that of the widest step (32 lanes, if 1000 iterations take 31.25 on average). Off:
  /// that of the truncated one (31).
  bool widest_step = true;
  /// Data bypass a memory that is narrower than one element of their operand. Off: the core cannot
  /// run it.
  bool bypass_narrow_memories = true;
  /// Data that do not fill a whole word cost a proportional part of the word's energy. Off: the
  /// fraction beyond whole words, per operand, level and direction, is free.
  bool part_words_cost = true;
  /// In an in-memory array with different inputs along its wordlines, rows shift from column to
  /// column. The shift counts at the loop that shares the axis. Off: at another loop, which depends
  /// on the order of a set of loop names.
  bool rows_shift_at_their_loop = true;
  /// Processor instructions other than products, waves of tiles and kernel launches take time. Off:
  /// they take none.
  bool instruction_costs = true;
  /// Unrollings other than the dataflow are tried, see `fixed_dataflow`. Off: the dataflow, and
  /// divisors on array dims that it leaves free.
  bool free_unrolling = true;

  static constexpr ModelChoices zigzag_3_8() {
    return {.first_partial_sums_free = false,
            .reserve_double_buffers = false,
            .port_stalls_add = false,
            .half_shared_loads_add = false,
            .loads_keep_minimum = false,
            .gaps_not_fetched = false,
            .widest_step = false,
            .bypass_narrow_memories = false,
            .part_words_cost = false,
            .rows_shift_at_their_loop = false,
            .instruction_costs = false,
            .free_unrolling = false};
  }
  friend bool operator==(const ModelChoices&, const ModelChoices&) = default;
};

/// One entry of a user's order of the temporal loops. The entry ("*", nullopt) separates the
/// innermost loops from the outermost ones.
struct OrderedLoop {
  std::string dim;
  std::optional<std::int64_t> size; ///< nullopt = any factor of the dim
  friend bool operator==(const OrderedLoop&, const OrderedLoop&) = default;
};

/// Computation of an output that scatters over shared axes: dX of a convolution, or a transposed
/// convolution. Equations are in docs/explanation/gradient-products.md.
enum class InputGradient {
  best,         ///< the one with the lowest cost; ties go to the first of these
  scatter,      ///< products added at their position, as in the loop nest
  decomposed,   ///< one convolution of stride 1 per residue class of the stride
  zero_inserted ///< one convolution of stride 1 over dY with zeros inserted
};

/// Options of core_cost().
struct CoreCostOptions {
  Objective objective = Objective::latency;
  ModelChoices model;
  int lpf_limit = 6; ///< maximum number of prime factors of loops after merging; 0 = off
  /// Whether to keep the core's dataflow (or `spatial`) even if another unrolling costs less; array
  /// dims that it leaves open may take any loop. Off: both are tried.
  bool fixed_dataflow = false;
  /// Spatial mapping for a core without a dataflow, per array dim.
  std::vector<std::vector<Unrolling>> spatial;
  /// Number of other unrollings tried under `free_unrolling`: those that use the most lanes, if
  /// that may help. Above kUsualUnrollings they are tried unless the bound excludes them.
  int free_unrollings = kUsualUnrollings;
  static constexpr int kUsualUnrollings = 12;
  /// Candidate layer dims for array dims without an unrolling, per array dim; empty = all.
  std::vector<std::vector<std::string>> spatial_hints;
  /// Number of best generated unrollings that are searched without `free_unrolling`.
  /// `mixed_unrollings`: whether several layer dims may share an array dim.
  int generated_unrollings = 3;
  bool mixed_unrollings = false;
  /// Required order of the temporal loops, innermost first; empty = any. Dims that a problem lacks
  /// are ignored.
  std::vector<OrderedLoop> temporal_order;
  bool even_allocation = false; ///< all operands have the same loops in a shared memory
  InputGradient input_gradient = InputGradient::best;
  /// Off-chip rate for problems with streamed operands. The objective uses the larger of the core's
  /// and the transfer's cycles, and the sum of their energies.
  OffchipRate offchip;
};

/// One operand of a problem. It holds only properties that determine the cost, without tensor
/// names, so that equal problems compare equal whatever their origin.
struct ProblemOperand {
  AccessMode mode = AccessMode::read;
  MemoryOperand memory = MemoryOperand::I1;
  std::vector<AxisExpr> axes;
  std::vector<std::int64_t> extents; ///< sizes of the tensor region, for clipping; one per axis
  std::int64_t bits = 32;            ///< bits per element as stored
  std::int64_t partial_bits = 32;    ///< bits per partial sum (outputs only)
  int passes = 1;
  bool opaque = false;
  /// Whether the operand does not fit in the core's top memory and is streamed from or to the
  /// off-chip memory. An output that stays must fit at partial_bits if the mapping keeps partial
  /// sums in that memory.
  bool offchip = false;

  friend bool operator==(const ProblemOperand&, const ProblemOperand&) = default;
};

/// One operator tile to be costed.
struct CoreProblem {
  ComputeKind compute = ComputeKind::mac;
  std::vector<LoopDim> dims; ///< loops with the sizes of the tile
  std::vector<ProblemOperand> operands;
  VectorWork work;
  std::vector<NestProduct> products; ///< products as in LoopNest::products; indices into `operands`
  /// Bit d is set if loop d goes across blocks that share a scale, see loops_across_blocks().
  std::uint32_t across_blocks = 0;

  friend bool operator==(const CoreProblem&, const CoreProblem&) = default;
};

/// Size of an operand in bits when it is stored whole, with partial sums at their width while
/// running.
std::int64_t footprint(const ProblemOperand& operand);
/// Whether an operand is streamed from or to the off-chip memory.
bool streams(const CoreProblem& problem);

/// Whether an operand of a problem or of a nest is indexed by data.
template <class Operand>
bool looks_up(const Operand& operand) {
  return !operand.opaque && std::ranges::any_of(operand.axes, [](const AxisExpr& axis) {
    return axis.data_dependent;
  });
}

/// Whether the accessed elements of an operand change with the loop.
template <class Operand>
bool moves_with(const Operand& operand, std::size_t dim) {
  return operand.opaque || std::ranges::any_of(operand.axes, [&](const AxisExpr& axis) {
           return has_loop(axis, dim);
         });
}

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

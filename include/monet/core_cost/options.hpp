// Options of the core cost model: its objective, its modelling choices and its search for mappings.
#pragma once

#include "monet/base/objective.hpp"
#include "monet/base/units.hpp"
#include "monet/hardware/core.hpp"

#include <cstdint>
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

} // namespace monet

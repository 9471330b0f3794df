// How the core cost model looks for a mapping, and what it takes for the best.
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
/// equations are in docs/explanation/core-cost-zigzag.md.
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
  /// Data that fill no whole word cost that part of the word's energy. Off: what operand, level and
  /// direction have beyond whole words costs nothing.
  bool part_words_cost = true;
  /// Where an array that computes in memory takes different inputs along its wordlines, so that its
  /// rows shift from column to column, the shift counts at the loop that shares the axis. Off: at
  /// another loop, by the order of a set of their names.
  bool rows_shift_at_their_loop = true;
  /// Instructions that processors issue beside products, waves of tiles and starts of kernels. Off:
  /// they take no time.
  bool instruction_costs = true;
  /// Unrollings of our own choice beside the dataflow, see `fixed_dataflow`. Off: the dataflow, and
  /// divisors on array dims it leaves free.
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

/// One place in a user's order of the temporal loops. ("*", none) parts what counts from the
/// innermost loop from what counts from the outermost one.
struct OrderedLoop {
  std::string dim;
  std::optional<std::int64_t> size; ///< none = any factor of the dim
  friend bool operator==(const OrderedLoop&, const OrderedLoop&) = default;
};

/// How an output that scatters over shared axes is computed: dX of a convolution, a transposed
/// convolution. Equations are in docs/explanation/gradient-products.md.
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

} // namespace monet

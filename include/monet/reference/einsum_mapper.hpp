// Fused mappings of a cascade of Einsums on one core: which tensors are exchanged in the buffer
// instead of DRAM, under which shared loops, with which tiles; the exact front of buffer size
// against DRAM traffic.
//
// The model (LoopTree; the equations of AccelForge's mapper): Einsums run one after another; each
// operand has one tile in the buffer, and loops stand above and below it. A tensor that only
// Einsums of the cascade use may live in the buffer alone: then all that use it share the loops
// above it, which index it (nothing is made twice), and run as branches below them, one after
// another. Every other tensor is fetched from DRAM by each Einsum that uses it, once for every
// iteration of the loops above its tile that do not index it; partial sums that leave the buffer
// come back. Tiles divide what they tile.
#pragma once

#include "monet/optimise/search.hpp"
#include "monet/workload/graph.hpp"

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

namespace monet {

struct EinsumTensor {
  std::string name;
  std::vector<std::int64_t> shape;
  std::int64_t bits = 8; ///< per element
  bool external = false; ///< given to the cascade or wanted from it: it is in DRAM
};

struct EinsumOperand {
  std::uint32_t tensor = 0;
  bool written = false;
  std::vector<AxisExpr> axes; ///< one per axis of the tensor; `dim` is a rank of the Einsum
};

struct Einsum {
  std::string name;
  std::vector<std::int64_t> bounds; ///< of its ranks
  std::vector<bool> whole;          ///< ranks that may not be cut (a softmax's); empty = none
  std::vector<EinsumOperand> operands;
};

/// Einsums in the order in which they run, producers first.
struct EinsumCascade {
  std::vector<EinsumTensor> tensors;
  std::vector<Einsum> einsums;
};

/// Invariants as InternalError: indices in range, one producer each, one axis expression per axis,
/// sizes small enough for 64-bit sums of bits.
void verify(const EinsumCascade& cascade);

struct Layer;

/// Layers of a ZigZag workload in the order of its file, `operand_source` saying which make what.
/// `bits` overrides their precisions (of a result: O_final). InputError for an operand whose sizes
/// are not those of what its source makes.
EinsumCascade make_cascade(const std::vector<Layer>& layers,
                           std::optional<std::int64_t> bits = std::nullopt);

/// C_1 = A * B_1, C_2 = C_1 * B_2, ...: products of a matrix of `sizes[0]` rows and `sizes[1]`
/// columns with matrices of sizes[1] x sizes[2], sizes[2] x sizes[3], ...
EinsumCascade matmul_chain(const std::vector<std::int64_t>& sizes, std::int64_t bits);

/// The operators of a network or training step as a cascade; views must be folded.
/// `bits` overrides the element types. A tensor is external when no operator makes it, or when it
/// is an output of the graph or a parameter's or state's new value.
EinsumCascade make_cascade(const Graph& graph, std::optional<std::int64_t> bits = std::nullopt);

struct EinsumOptions {
  std::optional<std::int64_t> buffer_bits; ///< at most
  bool front = true; ///< false: only the least DRAM traffic, with any buffer within buffer_bits
  bool fuse = true;  ///< false: every tensor goes through DRAM
  int max_fused_loops = std::numeric_limits<int>::max();
  /// A tensor that several Einsums read from DRAM, or one that is wanted outside and read inside,
  /// may stay in the buffer from its first use to its last: it then crosses DRAM once.
  bool resident = false;
  /// AccelForge's rules, where they differ from the model: a tile may move below a shared loop
  /// that indexes it though the neighbours have the loops in another order (which can lose the
  /// best mapping), and nobody asks whether a tensor that was made under fewer loops than two
  /// Einsums share is complete when it is read (which can find mappings that do not work).
  bool reference_rules = false;
  /// For one buffer (no front): run by run, where runs are what stands below common loops; or one
  /// future after another. Unset: by runs if tensors live long, by futures if not.
  std::optional<bool> by_runs;
  std::size_t first_rows = 12; ///< per future, of the first pass, which finds bounds for the second
  /// Futures after one Einsum: more, and the least promising are dropped, and the bound comes from
  /// a problem in which tensors with long lives are free to be anywhere.
  std::size_t max_futures = 40'000;
  std::size_t max_rows = 4'000'000; ///< of one step of the join; more, and the result is not exact
  std::int64_t max_joins = 2'000'000'000; ///< of two rows, in all; likewise
};

/// How one Einsum of a mapping is run.
struct EinsumMapping {
  struct Loop {
    std::uint32_t rank = 0;
    std::int64_t tile = 1; ///< elements of the rank that one iteration covers
    std::int64_t trips = 1;
  };
  struct Node {                ///< from the outermost inwards
    std::vector<Loop> loops;   ///< right above the tile
    std::uint32_t operand = 0; ///< whose tile is held here
    std::int64_t tile_bits = 0;
    std::int64_t dram_bits = 0; ///< that cross DRAM for it
    bool in_buffer = false;     ///< backed by the buffer, not by DRAM
  };
  std::vector<Node> nodes;
  std::size_t shared_loops = 0; ///< with the Einsum before it
};

struct EinsumPoint {
  std::int64_t buffer_bits = 0;
  std::int64_t dram_bits = 0;
  std::vector<EinsumMapping> einsums;
};

/// What was looked at, and what each rule kept of it.
struct EinsumStatistics {
  struct Rule {
    std::string name;
    std::int64_t seen = 0;
    std::int64_t kept = 0;
  };
  std::size_t signatures = 0; ///< different Einsums
  std::size_t rows = 0;       ///< mappings of single Einsums that are kept
  std::size_t joins = 0;
  std::size_t widest = 0; ///< most keys after a join
  std::vector<Rule> rules;
};

struct EinsumResult {
  std::vector<EinsumPoint> front;   ///< buffer bits rising, DRAM bits falling
  bool exact = true;                ///< no mapping of the model is better anywhere
  std::int64_t bound_dram_bits = 0; ///< of any mapping within the buffer
  bool interrupted = false;
  EinsumStatistics statistics;
};

/// InfeasibleError when the buffer does not hold one element of every operand of some Einsum.
EinsumResult map_einsums(const EinsumCascade& cascade, const EinsumOptions& options,
                         const SearchControl& control = {});

} // namespace monet

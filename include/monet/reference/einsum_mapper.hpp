// map_einsums(): fused mappings of a cascade of Einsums on one core. It selects the tensors that
// are exchanged in the buffer instead of DRAM, their shared loops and their tiles. The result is
// the exact front of buffer size against DRAM traffic.
//
// The model is LoopTree's, with the equations of AccelForge's mapper. Einsums run one after
// another; each operand has one tile in the buffer, with loops above and below it. A tensor that
// only Einsums of the cascade use may live in the buffer alone. All its users then share the loops
// above it, which all index it (no element is computed twice), and run as consecutive branches
// below them. Each Einsum fetches every other tensor from DRAM, once per iteration of the loops
// above its tile that do not index it. Partial sums that leave the buffer return to it later. Tile
// sizes divide the sizes that they tile.
// Example:
//   std::int64_t least_dram_bits(std::int64_t buffer_bits) {
//     EinsumOptions options;
//     options.buffer_bits = buffer_bits;
//     options.front = false;
//     const EinsumResult result = map_einsums(matmul_chain({64, 128, 256, 64}, 8), options);
//     return result.front.front().dram_bits;
//   }
#pragma once

#include "monet/optimise/search.hpp"
#include "monet/workload/graph.hpp"

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

namespace monet {

/// A tensor of a cascade.
struct EinsumTensor {
  std::string name;
  std::vector<std::int64_t> shape;
  std::int64_t bits = 8; ///< bits per element
  /// Whether it is an input or output of the cascade, and thus in DRAM.
  bool external = false;
};

/// An operand of an Einsum: the tensor and how the ranks index it.
struct EinsumOperand {
  /// Index of the tensor in EinsumCascade::tensors.
  std::uint32_t tensor = 0;
  /// Whether the Einsum writes it; false: reads it.
  bool written = false;
  std::vector<AxisExpr> axes; ///< one per axis of the tensor; `dim` is a rank of the Einsum
};

/// One Einsum: its ranks and operands.
struct Einsum {
  std::string name;
  std::vector<std::int64_t> bounds; ///< size of each rank
  std::vector<bool> whole;          ///< ranks that cannot be tiled (a softmax's); empty: all can
  std::vector<EinsumOperand> operands;
};

/// Einsums in execution order, producers first.
struct EinsumCascade {
  std::vector<EinsumTensor> tensors;
  std::vector<Einsum> einsums;
};

/// Checks the invariants of a cascade: indices in range, one producer per tensor, one expression
/// per axis, and sizes small enough for 64-bit sums of bits. Throws InternalError if one is
/// violated.
void verify(const EinsumCascade& cascade);

struct Layer;

/// Makes a cascade from the layers of a ZigZag workload, in the order of its file; `operand_source`
/// links producers and consumers. `bits` overrides their precisions (for results: O_final). Throws
/// InputError for an operand whose sizes differ from those of its source's result.
EinsumCascade make_cascade(const std::vector<Layer>& layers,
                           std::optional<std::int64_t> bits = std::nullopt);

/// Makes the chain of matrix products C_1 = A * B_1, C_2 = C_1 * B_2, ... Matrix A has sizes[0] x
/// sizes[1] elements, B_1 sizes[1] x sizes[2], B_2 sizes[2] x sizes[3], and so on.
EinsumCascade matmul_chain(const std::vector<std::int64_t>& sizes, std::int64_t bits);

/// Makes a cascade from the operators of a network or training step; views must be folded. `bits`
/// overrides the element types. A tensor is external if no operator produces it, if it is an output
/// of the graph, or if it is the new value of a parameter or state.
EinsumCascade make_cascade(const Graph& graph, std::optional<std::int64_t> bits = std::nullopt);

/// Options of map_einsums().
struct EinsumOptions {
  std::optional<std::int64_t> buffer_bits; ///< capacity of the buffer; nullopt: no limit
  /// Whether to find the whole front; false: only the minimum DRAM traffic within buffer_bits.
  bool front = true;
  /// Whether to fuse Einsums; false: every tensor goes through DRAM.
  bool fuse = true;
  /// Maximum number of loops that neighbouring Einsums share.
  int max_fused_loops = std::numeric_limits<int>::max();
  /// Whether some tensors may stay in the buffer from first to last use, crossing DRAM once. They
  /// are tensors that several Einsums read from DRAM, and outputs of the cascade that it also
  /// reads.
  bool resident = false;
  /// Whether to follow AccelForge's rules where they differ from the model. First, a tile may move
  /// below a shared loop that indexes it even if the neighbours order the loops differently, which
  /// can lose the best mapping. Second, a tensor made under fewer loops than two Einsums share is
  /// not checked to be complete when read, which can find invalid mappings.
  bool reference_rules = false;
  /// Search method for a single buffer size (no front). true: run by run, where a run is the
  /// Einsums below common loops; false: state by state (see max_futures). nullopt: by runs if
  /// tensors live long, else by states.
  std::optional<bool> by_runs;
  /// Rows per state in the first pass, which finds bounds for the second.
  std::size_t first_rows = 12;
  /// Maximum number of states after one Einsum, where a state is the shared loops and live tensors.
  /// Beyond it, the least promising states are dropped, and the bound is from a relaxed problem in
  /// which long-lived tensors may be anywhere.
  std::size_t max_futures = 40'000;
  /// Maximum number of rows in one step of the join; if there are more, the result is not exact.
  std::size_t max_rows = 4'000'000;
  /// Maximum number of joins of two rows, in total; if there are more, the result is not exact.
  std::int64_t max_joins = 2'000'000'000;
};

/// Mapping of one Einsum.
struct EinsumMapping {
  /// A loop over tiles of one rank.
  struct Loop {
    std::uint32_t rank = 0;
    std::int64_t tile = 1; ///< elements of the rank that one iteration covers
    /// Number of iterations.
    std::int64_t trips = 1;
  };
  /// A tile in the buffer and the loops right above it; nodes are in order from the outermost.
  struct Node {
    std::vector<Loop> loops;   ///< loops right above the tile
    std::uint32_t operand = 0; ///< operand whose tile is held here
    /// Size of the tile in the buffer.
    std::int64_t tile_bits = 0;
    std::int64_t dram_bits = 0; ///< DRAM traffic of this operand
    bool in_buffer = false;     ///< true: stored in the buffer only, not in DRAM
  };
  std::vector<Node> nodes;
  std::size_t shared_loops = 0; ///< number of loops shared with the previous Einsum
};

/// One point of the front: buffer size, DRAM traffic and the mappings, one per Einsum.
struct EinsumPoint {
  std::int64_t buffer_bits = 0;
  std::int64_t dram_bits = 0;
  std::vector<EinsumMapping> einsums;
};

/// Statistics of the search: problem sizes and the effect of each pruning rule.
struct EinsumStatistics {
  /// Candidates that a pruning rule saw and kept.
  struct Rule {
    std::string name;
    std::int64_t seen = 0;
    std::int64_t kept = 0;
  };
  std::size_t signatures = 0; ///< number of different Einsums
  std::size_t rows = 0;       ///< number of kept mappings of single Einsums
  std::size_t joins = 0;
  std::size_t widest = 0; ///< maximum number of keys after a join
  std::vector<Rule> rules;
};

/// Result of map_einsums().
struct EinsumResult {
  std::vector<EinsumPoint> front; ///< in ascending buffer size and descending DRAM traffic
  bool exact = true;              ///< true: the front is optimal in the model
  /// Lower bound on the DRAM traffic of any mapping within the buffer.
  std::int64_t bound_dram_bits = 0;
  bool interrupted = false;
  EinsumStatistics statistics;
};

/// Finds the front of fused mappings of a cascade. Throws InfeasibleError if the buffer cannot hold
/// one element of every operand of some Einsum.
EinsumResult map_einsums(const EinsumCascade& cascade, const EinsumOptions& options,
                         const SearchControl& control = {});

} // namespace monet

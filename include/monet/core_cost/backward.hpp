// Joint mapping of the two products of a layer's backward pass on one NPU:
//
//   dX(M,K) = dY(M,N) W(K,N)^T    sums over N
//   dW(K,N) = X(M,K)^T dY(M,N)    sums over M
//
// for a forward product Y(M,N) = X(M,K) W(K,N). Both products read dY. An NPU is a systolic array
// with one on-chip memory, double-buffered (one half is in use while the other is filled), and
// DRAM. The techniques are those of Kim, Na, Lee, Lee and Huh, "Improving Data Reuse in NPU On-chip
// Memory with Interleaved Gradient Order for DNN Training", MICRO 2023 (doi
// 10.1145/3613424.3614299), and the exact optimum of the space that contains them all. The space
// and the equations are in docs/explanation/backward-dataflow.md.
// Example:
//   std::vector<BackwardLayer> map_resnet50(const Chip& chip) {
//     BackwardPlan plan;
//     plan.machine = npu_machine(chip);
//     plan.techniques = {Technique::sequential, Technique::joint};
//     const GemmTable table = read_gemm_table("data/workload/gemm/resnet50.yaml");
//     return map_backward(gemm_pairs(table, 8), plan);
//   }
#pragma once

#include "monet/base/errors.hpp"
#include "monet/core_cost/layers.hpp"
#include "monet/hardware/chip.hpp"
#include "monet/workload/graph.hpp"

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace monet {

/// Gradient products of one layer with forward product Y(m,n) = X(m,k) W(k,n), repeated `repeats`
/// times with different data (groups, heads). Repeats run in sequence and share nothing.
struct GemmPair {
  std::string name;
  std::int64_t m = 1; ///< rows of X and dY: batch times positions
  std::int64_t k = 1; ///< columns of X, rows of W: input channels times taps
  std::int64_t n = 1; ///< columns of dY and W: output channels
  std::int64_t repeats = 1;
  bool has_dx = true; ///< false for a first layer: only dW is computed
  /// Elements of the feature map that X is an im2col expansion of; 0 = X is not an expansion. With
  /// Im2col::raw, moving all of X or dX moves this number of elements instead of m * k.
  std::int64_t raw_elements = 0;
};

/// Maximum dimension of a pair, and maximum number of multiplications (m * k * n) of a pair.
inline constexpr std::int64_t kMaxGemmDimension = std::int64_t{1} << 40;
inline constexpr std::int64_t kMaxGemmMacs = std::int64_t{1} << 45;

/// An NPU core's array, with the on-chip memory and DRAM that it uses.
struct NpuMachine {
  std::string name;
  std::int64_t rows = 1; ///< rows of the array
  std::int64_t columns = 1;
  std::int64_t buffer_bits = 0; ///< on-chip memory; half of it holds a step's working set
  bool double_buffered = true;  ///< false: all of it holds a step's working set
  /// DRAM bandwidth: bandwidth_bits in bandwidth_cycles cycles, shared by reads and writes; both
  /// are between 1 and 2^20. A fraction is exact: 1,142.857... bits per cycle are 8000 in 7 cycles.
  /// Only the final result is rounded.
  std::int64_t bandwidth_bits = 1;
  std::int64_t bandwidth_cycles = 1;
  std::int64_t cores = 1;  ///< cores that share the buffer and bandwidth given here
  double frequency_hz = 0; ///< 0 = unknown
};

/// Whether a core is an array core whose products are spread over multipliers as on a systolic
/// array: not an in-memory array, a processor or a GPU.
bool is_npu_core(const Core& core);

/// Builds an NPU machine from `cores` copies of the chip's first NPU core. Its columns are the
/// product of all array dimensions but the first; its memory is the outermost one. Its bandwidth is
/// the minimum of the DRAM's port and the links to it. Memory (rounded down) and bandwidth are the
/// chip's, scaled by `cores` over the number of array cores that share them: two cores of an
/// eight-core chip have a quarter, and four cores of a one-core chip four times as much. Throws
/// InputError at the chip's file if the chip has no array core or no DRAM.
NpuMachine npu_machine(const Chip& chip, std::int64_t cores = 1);

/// Set of tile sizes that is considered.
enum class TilePolicy {
  array,    ///< the tile that fills the array in each of its three dimensions
  searched, ///< one tile per possible number of parts
  divisors, ///< searched tiles that divide the dimensions (no ragged tiles)
};

/// Model of a tile's cycles. A tile has `r` rows by `c` columns spread over an R x C array, and `t`
/// streamed elements. Its cycles are ceil(r / R) * ceil(c / C) * (t + 2R + C - 2), with fill and
/// drain (SCALE-Sim, Samajdar et al. 2018). The array holds the result (os), the right factor (ws:
/// W for dX, dY for dW) or the left factor (is: dY for dX, X for dW).
enum class TileTiming {
  systolic_os,
  systolic_ws,
  systolic_is,
  core, ///< cycles from BackwardOptions::tile_cycles
  none, ///< the array takes no time, so only traffic counts; tiles pass through it in slices
};

/// Traffic of X and dX of a convolution: that of the expanded matrix, or that of the feature map.
enum class Im2col { expanded, raw };

/// Rule by which Algorithm 1 selects dX-major or dW-major order. Under every rule it interleaves
/// plainly if the largest dimension is less than 4 times the smallest.
enum class MajorRule {
  dimensions, ///< line 4 of the paper's algorithm: dW-major if K > N and K > M
  sizes,      ///< the paper's text: dW-major if dX is larger than dW, M > N
  columns,    ///< the paper's text: dX-major if N >= K ("columns of dW"), otherwise dW-major
};

/// Data kept on the chip by techniques with given orders (all except `best_sequential` and the
/// joint ones).
enum class Retention {
  chosen, ///< the fastest choice that fits, for each operand
  steps,  ///< factors from one step to the next; incomplete sums if all of them fit
};

/// Loop orders of `dx_major` and `dw_major`, outermost first.
enum class MajorLoops {
  results,   ///< (m,k,n) and (n,k,m): the usual order of one product, used by both
  gradients, ///< (m,n,k) and (n,m,k): a tile of dY stays until both products have used it
};

/// Options of the backward model.
struct BackwardOptions {
  /// Tile sizes of techniques with fixed orders; `best_sequential` and `joint` always search.
  TilePolicy tiles = TilePolicy::searched;
  Retention retention = Retention::chosen;
  MajorLoops major_loops = MajorLoops::results;
  TileTiming timing = TileTiming::systolic_os;
  /// Whether a systolic tile includes fill and drain. Otherwise the array is filled while the
  /// previous tile drains, and a tile takes ceil(r / R) * ceil(c / C) * t cycles.
  bool fill_and_drain = true;
  /// Cycles of a product of r x t by t x c elements, for TileTiming::core. Must be a pure function.
  std::function<std::int64_t(std::int64_t r, std::int64_t c, std::int64_t t)> tile_cycles;
  Im2col im2col = Im2col::expanded;
  MajorRule rule = MajorRule::dimensions;
  std::int64_t element_bits = 16; ///< width of dY, W, X and of complete dX and dW
  std::int64_t partial_bits = 32; ///< width of incomplete sums, on the chip and in DRAM
  /// Whether results are written during the next steps. Otherwise the array waits for the writes.
  bool hide_writes = true;
  /// Optimiser state in bits per weight, excluding the weight, that an update reads and writes
  /// (Adam: 64); at most 128.
  std::int64_t state_bits = 0;
};

/// Techniques for ordering and tiling the two gradient products.
enum class Technique {
  sequential,      ///< dX, then dW, each in its usual order: dX by rows (m,k,n), dW by rows (k,n,m)
  best_sequential, ///< the best of 6 x 6 orders, with tiles searched for each
  interleave,      ///< alternating tiles of dX and dW, orders as in `sequential`
  dx_major,        ///< alternating, both in the order of dX: rows of dY (MajorLoops)
  dw_major,        ///< alternating, both in the order of dW: columns of dY (n,k,m)
  algorithm_1,     ///< one of the last three, selected by MajorRule
  best_of_three,   ///< the fastest of `interleave`, `dx_major` and `dw_major`
  joint,           ///< the optimum of the space
  joint_update,    ///< `joint` with the update of W on the chip once a tile is complete
};
inline constexpr int kTechniques = 9;
/// Name of a technique, such as "best-sequential".
std::string_view name_of(Technique technique);
std::optional<Technique> technique_named(std::string_view name);
const std::vector<std::string>& technique_names();

/// Traffic between chip and DRAM, in bits.
struct BackwardTraffic {
  std::int64_t dy_read = 0;
  std::int64_t w_read = 0;
  std::int64_t x_read = 0;
  std::int64_t dx_read = 0; ///< partial sums that are read back
  std::int64_t dx_write = 0;
  std::int64_t dw_read = 0;
  std::int64_t dw_write = 0;
  /// Weights and state read and written by the update of `joint_update`, excluding the part of W
  /// that dX has read anyway.
  std::int64_t update_read = 0;
  std::int64_t update_write = 0;

  std::int64_t reads() const;
  std::int64_t writes() const;
  std::int64_t bits() const { return reads() + writes(); }
  BackwardTraffic& operator+=(const BackwardTraffic& other);
  friend BackwardTraffic operator*(BackwardTraffic traffic, std::int64_t count);
  friend bool operator==(const BackwardTraffic&, const BackwardTraffic&) = default;
};

enum class GemmDim { m, k, n };
enum class BackwardOperand { dy, w, x, dx, dw };
std::string_view name_of(GemmDim dim);
std::string_view name_of(BackwardOperand operand);

/// Mapping of both products: their loops, tiles and retained data.
struct BackwardMapping {
  enum class Form {
    sequence,   ///< all of one product, then all of the other
    shared,     ///< `shared` outer loops, with the rest of dX and then the rest of dW inside
    interleaved ///< alternating tiles of both products
  };
  /// Mapping of one product: its loops, outermost first, each over the tiles of a dimension. An
  /// operand's depth is the number of loops outside of its retained part (0: all of the operand is
  /// kept, 3: a tile).
  struct Product {
    std::array<GemmDim, 3> order{GemmDim::m, GemmDim::k, GemmDim::n};
    std::array<std::int64_t, 3> block{1, 1, 1}; ///< elements of m, k, n per step
    std::array<int, 3> depth{3, 3, 3};          ///< depths of left factor, right factor, result
  };
  Form form = Form::sequence;
  int shared = 0;
  bool dw_first = false; ///< whether dW comes before dX in each phase
  bool dy_kept = false;  ///< dY is transferred once per iteration of the shared loops
  bool partials_spilled = false;
  Product dx; ///< depths of dY, W, dX
  Product dw; ///< depths of X, dY, dW
};

/// Cost of a pair with a technique: cycles and bits of all repeats.
struct BackwardCost {
  Technique technique = Technique::sequential;
  std::string variant;              ///< for example "joint dx-major, dY kept"
  std::int64_t latency_cycles = 0;  ///< rounded up once
  std::int64_t compute_cycles = 0;  ///< cycles of the array alone
  std::int64_t transfer_cycles = 0; ///< cycles of DRAM alone, rounded up
  BackwardTraffic traffic;
  BackwardMapping mapping;
  std::int64_t dram_bytes() const { return (traffic.bits() + 7) / 8; }
};

/// Cost of the pair with a technique. Ties go to the first candidate in enumeration order. Throws
/// InfeasibleError naming the operand and the missing bits if the tiles do not fit into memory, and
/// beyond kMaxGemmMacs. Throws InternalError for dimensions outside 1 .. 2^40 (readers reject them)
/// and for machines without array, memory or bandwidth.
BackwardCost backward_cost(const GemmPair& pair, const NpuMachine& machine, Technique technique,
                           const BackwardOptions& options = {});

/// Lower bounds on traffic and latency of any schedule of a pair, whatever its order, tiles and
/// replacement policy.
struct BackwardBound {
  std::int64_t compulsory_bits = 0; ///< each operand once, including dY
  std::int64_t pebble_bits = 0;     ///< 2F/sqrt(S) - 2S words, F multiplications of both products
  std::int64_t dram_bits = 0;       ///< the larger of the two
  std::int64_t latency_cycles = 0;  ///< the larger of transfer and compute time
  std::int64_t dram_bytes() const { return dram_bits / 8; }
};
/// Lower bounds for every technique except `joint_update`.
BackwardBound backward_bound(const GemmPair& pair, const NpuMachine& machine,
                             const BackwardOptions& options = {});

/// Dimension along which a pair is partitioned into equal parts (the last may be smaller).
enum class PartitionScheme {
  none,
  weight_sharing, ///< m: every part reads all of W; the parts' dW are summed
  dy_sharing,     ///< n: every part reads all of X; the parts' dX are summed
  ifmap_sharing,  ///< k: every part reads all of dY; no sums
};
inline constexpr int kPartitionSchemes = 4;
std::string_view name_of(PartitionScheme scheme);

/// Cost of a pair partitioned by a scheme.
struct PartitionedCost {
  PartitionScheme scheme = PartitionScheme::none;
  std::int64_t parts = 1;
  std::int64_t latency_cycles = 0;
  BackwardTraffic traffic;
  BackwardCost part;           ///< cost of the largest part
  std::int64_t sum_cycles = 0; ///< cycles of summing partial results, included in `latency_cycles`
};

/// Cost of the pair in `parts` parts of a scheme. On one core the parts run in sequence, each with
/// all of the memory. With machine.cores > 1 they run in parallel, one part per core, each with its
/// share of memory and bandwidth. The cores run in lockstep, so that data that all of them read (W,
/// X or dY) are transferred and held once. Results to be summed are written by each part as partial
/// sums, then read and written once more at DRAM bandwidth after everything else. Throws
/// InfeasibleError as backward_cost(), and for weight-sharing with `joint_update`.
PartitionedCost partitioned(const GemmPair& pair, const NpuMachine& machine, Technique technique,
                            PartitionScheme scheme, std::int64_t parts,
                            const BackwardOptions& options = {});

/// Cost of the fastest scheme: on one core with 1, 2, 4, ... `max_parts` parts, on several cores
/// with one part per core. Ties go to the first scheme, then to fewer parts.
PartitionedCost best_partition(const GemmPair& pair, const NpuMachine& machine, Technique technique,
                               std::int64_t max_parts = 8, const BackwardOptions& options = {});

/// A layer as input of the paper's nearest-neighbour predictor, with the cost of each scheme.
struct PartitionSample {
  std::array<double, 6> dims{}; ///< rows and columns of dX, dW and dY
  /// Cycles by scheme; infinite if it does not fit. At least one is finite.
  std::array<double, kPartitionSchemes> cycles{};
};
PartitionSample partition_sample(const GemmPair& pair, const NpuMachine& machine,
                                 Technique technique, std::int64_t max_parts = 8,
                                 const BackwardOptions& options = {});

/// Accuracy of predicting the scheme by nearest neighbours. In each of `splits` random splits, 80 %
/// of the layers are known. For each other layer the `neighbours` nearest known layers vote, by
/// Euclidean distance in the logarithms of the dimensions (ties: the earlier layer).
struct NeighbourGuess {
  double right = 0; ///< share of predicted layers for which the prediction is as fast as the best
  double guessed_cycles = 0; ///< mean over splits of the sum over predicted layers
  double exact_cycles = 0;   ///< the same mean with the best scheme
};
NeighbourGuess guess_partitions(const std::vector<PartitionSample>& samples, std::uint64_t seed = 1,
                                int splits = 1000, int neighbours = 3);

/// One row of a table: the forward product Y(m,n) = X(m,k) W(k,n) of one sample.
struct GemmLayer {
  std::string name;
  std::int64_t m = 1;
  std::int64_t k = 1;
  std::int64_t n = 1;
  std::int64_t input = 0;   ///< distinct elements of X in a sample; 0 = m * k
  std::int64_t repeats = 1; ///< equal layers, or groups of a convolution
  bool first = false;       ///< X is the network's input, which needs no gradient
  SourceLoc where;
};

/// A GEMM table, as read from a file.
struct GemmTable {
  std::string name;
  std::vector<GemmLayer> layers;
};

/// Reads a GEMM table:
///
///   name: tiny                  # default: the file's name
///   layers:
///     - {name: conv1, m: 196, k: 27, n: 32, input: 588, repeats: 1, first: true}
///
/// `m`, `k` and `n` are required; `input` is at most m * k. Throws one InputError with every
/// problem found: dimensions outside 1 .. 2^40, a layer with more than 2^45 MACs including repeats,
/// unknown keys, duplicate names, no layers.
GemmTable read_gemm_table(const std::string& path);
/// Parses the text of a GEMM table; `origin` names it in messages. Errors as read_gemm_table().
GemmTable parse_gemm_table(std::string_view text, const std::string& origin);

/// A product without a pair of gradients, and the reason.
struct SkippedProduct {
  std::string name;
  std::string op_type;
  std::string why;
};

/// The backward pass of a network, layer by layer in the order of its forward pass.
struct GemmNetwork {
  std::string name;
  std::vector<GemmPair> pairs;
  std::vector<SkippedProduct> skipped;
};

/// Gradient products of every layer for `batch` samples: m and the elements of the input are
/// multiplied by the batch. Throws InputError at the layer if they exceed 2^40 or the MACs exceed
/// 2^45.
GemmNetwork gemm_pairs(const GemmTable& table, std::int64_t batch = 1);

/// Gradient products of a network's products of two factors (Conv, ConvTranspose, MatMul, Gemm,
/// Einsum), with the batch in the shapes. Call fold_views() first, so that factors keep their
/// memory layout.
///
/// Loops shared by both factors and the result are repeats (groups, heads). Of the others, those of
/// the left factor and the result form M, those of both factors K, those of the right factor and
/// the result N; a convolution uses im2col. W is the factor that depends on weights only, otherwise
/// the right one, so attention's scores are pairs, too. A product that depends on no result of
/// weights has no dX.
///
/// Skipped are products without a gradient or with dX only, and multiply-accumulates of another
/// form. Throws InputError at the operator for the limits above.
GemmNetwork gemm_pairs(const Graph& network);

/// Whether no dimension exceeds kMaxGemmDimension and the multiplications do not exceed
/// kMaxGemmMacs. All arguments must be at least 1.
inline bool gemm_is_within_limits(std::int64_t m, std::int64_t k, std::int64_t n,
                                  std::int64_t repeats) {
  if (m > kMaxGemmDimension || k > kMaxGemmDimension || n > kMaxGemmDimension)
    return false;
  std::int64_t macs = m;
  for (const std::int64_t factor : {k, n, repeats}) {
    if (macs > kMaxGemmMacs / factor)
      return false;
    macs *= factor;
  }
  return true;
}

/// Settings for the evaluation of every pair.
struct BackwardPlan {
  NpuMachine machine;
  BackwardOptions options;
  std::vector<Technique> techniques;
  /// Scheme by which pairs are partitioned; nullopt: the fastest one for each pair. Several cores
  /// share every pair, so `none` is invalid for them.
  std::optional<PartitionScheme> scheme = PartitionScheme::none;
  std::int64_t max_parts = 8; ///< maximum number of parts in sequence, on one core
  int jobs = 1;               ///< threads; the results do not depend on it
};

/// Costs of one pair by technique, with its lower bounds.
struct BackwardLayer {
  GemmPair pair;
  std::vector<PartitionedCost> costs; ///< costs by technique, in the plan's order
  BackwardBound bound;
};

/// Evaluates a network's pairs; equal pairs are solved once. `tell`, if not empty, is called from
/// any thread with the numbers of finished and of all different pairs. Throws InfeasibleError
/// naming the layer.
std::vector<BackwardLayer>
map_backward(const GemmNetwork& network, const BackwardPlan& plan,
             const std::function<void(std::int64_t, std::int64_t)>& tell = {});

/// Cost of a pair's forward pass in its usual order. Each of several cores has a part of the rows,
/// and reads all of W.
PartitionedCost forward_cost(const GemmPair& pair, const NpuMachine& machine,
                             const BackwardOptions& options);

/// Traffic of an update after the pair, in bits and for all repeats: dW, weights and state are
/// read, weights and state written.
std::int64_t update_bits(const GemmPair& pair, const BackwardOptions& options);

/// Function for TileTiming::core: cycles of a product of r x t by t x c elements according to
/// core_cost(), on a core whose memories hold all of it. Thread-safe.
std::function<std::int64_t(std::int64_t, std::int64_t, std::int64_t)>
core_tile_cycles(const Core& core, const BackwardOptions& options);

} // namespace monet

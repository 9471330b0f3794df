// The two products of a layer's backward pass on one NPU, mapped together:
//
//   dX(M,K) = dY(M,N) W(K,N)^T    sums over N
//   dW(K,N) = X(M,K)^T dY(M,N)    sums over M
//
// for a forward product Y(M,N) = X(M,K) W(K,N); both read dY. An NPU is a systolic array behind one
// on-chip memory, of which one half is worked on while the other is filled, and DRAM behind that.
// Techniques are those of Kim, Na, Lee, Lee and Huh, "Improving Data Reuse in NPU On-chip Memory
// with Interleaved Gradient Order for DNN Training", MICRO 2023 (doi 10.1145/3613424.3614299), and
// the exact optimum of the space that holds them all. Space and equations are in
// docs/explanation/backward-dataflow.md.
#pragma once

#include "monet/hardware/chip.hpp"

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace monet {

/// Of one layer: Y(m,n) = X(m,k) W(k,n), `repeats` times with other data (groups, heads): they run
/// one after another and share nothing.
struct GemmPair {
  std::string name;
  std::int64_t m = 1; ///< rows of X and dY: batch times positions
  std::int64_t k = 1; ///< columns of X, rows of W: input channels times taps
  std::int64_t n = 1; ///< columns of dY and W: output channels
  std::int64_t repeats = 1;
  bool has_dx = true; ///< false in a first layer: only dW is computed
  /// Elements of the feature map that X is an expansion of (im2col); 0 = X is no expansion. With
  /// Im2col::raw, moving all of X or dX moves so many elements instead of m * k.
  std::int64_t raw_elements = 0;
};

/// Largest dimension that is accepted, and the most multiplications (m * k * n) of a pair.
inline constexpr std::int64_t kMaxGemmDimension = std::int64_t{1} << 40;
inline constexpr std::int64_t kMaxGemmMacs = std::int64_t{1} << 45;

/// One core's array, and the memory and DRAM that it sees.
struct NpuMachine {
  std::string name;
  std::int64_t rows = 1; ///< of the array
  std::int64_t columns = 1;
  std::int64_t buffer_bits = 0; ///< on-chip memory; the half of it holds what a step works on
  bool double_buffered = true;  ///< false: all of it does
  /// DRAM moves bandwidth_bits in bandwidth_cycles cycles, reads and writes in turn: a fraction, so
  /// that 1,142.857... bits a cycle are 8000 in 7. Nothing is rounded but the end result. Both are
  /// between 1 and 2^20.
  std::int64_t bandwidth_bits = 1;
  std::int64_t bandwidth_cycles = 1;
  std::int64_t cores = 1;  ///< that share buffer and bandwidth, which are those of all together
  double frequency_hz = 0; ///< 0 = not given
};

/// An array core whose multipliers products are spread over as on a systolic array: none that
/// computes in memory, no processors and no GPU.
bool is_npu_core(const Core& core);

/// `cores` of the chip's first core of these: its dimensions (all but the first multiplied are the
/// columns), its outermost memory and the narrowest of the DRAM's port and the links on the way.
/// Memory (rounded down) and bandwidth are those of the chip times `cores` over the array cores
/// that share them: two cores of a chip of eight have a quarter, and four of a chip of one four
/// times as much. InputError at the chip's file when it has no array core or no DRAM.
NpuMachine npu_machine(const Chip& chip, std::int64_t cores = 1);

enum class TilePolicy {
  array,    ///< a tile is what fills the array in each of its three dimensions
  searched, ///< any tile that gives another count of parts
  divisors, ///< of those, tiles that divide: what mappers without ragged tiles know
};

/// Cycles of a tile: `r` rows by `c` columns of what is spread over an R x C array, and the length
/// `t` of what streams: ceil(r / R) * ceil(c / C) * (t + 2R + C - 2), with fill and drain
/// (SCALE-Sim, Samajdar et al. 2018). Spread over the array are the result (os), the right factor
/// (ws: W for dX, dY for dW) or the left one (is: dY for dX, X for dW).
enum class TileTiming {
  systolic_os,
  systolic_ws,
  systolic_is,
  core, ///< BackwardOptions::tile_cycles
  none, ///< the array takes no time: what is left is traffic. Tiles pass through it in slices
};

/// Traffic of X and dX of a convolution: of the matrix, or of the feature map it is made of.
enum class Im2col { expanded, raw };

/// When Algorithm 1 takes neither order but plain interleaving, and which order else. All: plain
/// where the largest dimension is less than 4 times the least.
enum class MajorRule {
  dimensions, ///< the paper's line 4: dW-major where K > N and K > M
  sizes,      ///< its prose: dW-major where dX is larger than dW, M > N
  columns,    ///< its prose: dX-major where N >= K ("columns of dW"), else dW-major
};

/// What techniques with given orders (all but `best_sequential` and the joint ones) keep on the
/// chip.
enum class Retention {
  chosen, ///< of each operand whatever is fastest of all that fits
  steps,  ///< factors from one step to the next; sums that are not complete where all of them fit
};

/// The loops of `dx_major` and `dw_major`, outermost first.
enum class MajorLoops {
  results,   ///< (m,k,n) and (n,k,m): the usual order of one product, taken by both
  gradients, ///< (m,n,k) and (n,m,k): a tile of dY stays until both products are through with it
};

struct BackwardOptions {
  /// Of techniques in fixed orders; `best_sequential` and `joint` search in any case.
  TilePolicy tiles = TilePolicy::searched;
  Retention retention = Retention::chosen;
  MajorLoops major_loops = MajorLoops::results;
  TileTiming timing = TileTiming::systolic_os;
  /// False: the array is filled while the tile before drains, and a systolic tile takes
  /// ceil(r / R) * ceil(c / C) * t cycles.
  bool fill_and_drain = true;
  /// For TileTiming::core: cycles of a product of r x t by t x c elements. Must not depend on when
  /// it is asked.
  std::function<std::int64_t(std::int64_t r, std::int64_t c, std::int64_t t)> tile_cycles;
  Im2col im2col = Im2col::expanded;
  MajorRule rule = MajorRule::dimensions;
  std::int64_t element_bits = 16; ///< of dY, W, X and of finished dX and dW
  std::int64_t partial_bits = 32; ///< of sums that are not complete, on the chip and in DRAM
  /// Results leave while the next steps compute. False: the array waits for them.
  bool hide_writes = true;
  /// Of the update: bits per weight beside the weight that are read and written (Adam: 64), at most
  /// 128.
  std::int64_t state_bits = 0;
};

enum class Technique {
  sequential,      ///< dX, then dW, each in its usual order: dX by rows (m,k,n), dW by rows (k,n,m)
  best_sequential, ///< the best of 6 x 6 orders with tiles searched for each
  interleave,      ///< a tile of dX, a tile of dW in turn, orders as `sequential`
  dx_major,        ///< in turn, both in the order of dX: rows of dY (MajorLoops)
  dw_major,        ///< in turn, both in the order of dW: columns of dY (n,k,m)
  algorithm_1,     ///< one of the last three by MajorRule
  best_of_three,   ///< the fastest of `interleave`, `dx_major` and `dw_major`
  joint,           ///< the optimum of the space
  joint_update,    ///< the same where the update of W happens on the chip, once a tile is complete
};
inline constexpr int kTechniques = 9;
/// "best-sequential", ...
std::string_view name_of(Technique technique);
std::optional<Technique> technique_named(std::string_view name);
const std::vector<std::string>& technique_names();

/// What crosses between chip and DRAM, in bits.
struct BackwardTraffic {
  std::int64_t dy_read = 0;
  std::int64_t w_read = 0;
  std::int64_t x_read = 0;
  std::int64_t dx_read = 0; ///< partial sums that come back
  std::int64_t dx_write = 0;
  std::int64_t dw_read = 0;
  std::int64_t dw_write = 0;
  /// Of `joint_update`: weights and state that the update reads and writes; what dX had read of W
  /// anyway is not in it.
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

/// How the products run.
struct BackwardMapping {
  enum class Form {
    sequence,   ///< all of one product, then all of the other
    shared,     ///< `shared` outer loops; inside, the rest of dX, then the rest of dW
    interleaved ///< a tile of one, a tile of the other in turn
  };
  /// One product: its loops, outermost first, each over tiles of a dimension; how many of them are
  /// outside of what is kept of each operand (0: all of it is kept, 3: a tile).
  struct Product {
    std::array<GemmDim, 3> order{GemmDim::m, GemmDim::k, GemmDim::n};
    std::array<std::int64_t, 3> block{1, 1, 1}; ///< elements of m, k, n that a step computes
    std::array<int, 3> depth{3, 3, 3};          ///< left factor, right factor, result
  };
  Form form = Form::sequence;
  int shared = 0;
  bool dw_first = false; ///< phase: dW leads
  bool dy_kept = false;  ///< dY passes the port once per pass of the loops that are shared
  bool partials_spilled = false;
  Product dx; ///< depths of dY, W, dX
  Product dw; ///< depths of X, dY, dW
};

/// What a technique takes and moves; times and bits of all repeats.
struct BackwardCost {
  Technique technique = Technique::sequential;
  std::string variant;              ///< "joint dx-major, dY kept"
  std::int64_t latency_cycles = 0;  ///< rounded up once
  std::int64_t compute_cycles = 0;  ///< of the array alone
  std::int64_t transfer_cycles = 0; ///< of DRAM alone, rounded up
  BackwardTraffic traffic;
  BackwardMapping mapping;
  std::int64_t dram_bytes() const { return (traffic.bits() + 7) / 8; }
};

/// Cost of the pair with a technique. Ties go to the first in the order of enumeration.
/// InfeasibleError naming the operand and the missing bits when the memory does not hold the tiles;
/// InternalError for dimensions outside 1 .. 2^40 (readers refuse them) and for machines without
/// array, memory or bandwidth; InfeasibleError beyond kMaxGemmMacs.
BackwardCost backward_cost(const GemmPair& pair, const NpuMachine& machine, Technique technique,
                           const BackwardOptions& options = {});

/// No schedule of the pair moves less or is faster, whatever its order, tiles and replacement.
struct BackwardBound {
  std::int64_t compulsory_bits = 0; ///< each operand once, dY too
  std::int64_t pebble_bits = 0;     ///< 2F/sqrt(S) - 2S words, F multiplications of both products
  std::int64_t dram_bits = 0;       ///< the larger of the two
  std::int64_t latency_cycles = 0;  ///< the longer of moving that and of computing
  std::int64_t dram_bytes() const { return dram_bits / 8; }
};
/// Of every technique but `joint_update`.
BackwardBound backward_bound(const GemmPair& pair, const NpuMachine& machine,
                             const BackwardOptions& options = {});

/// Along which dimension a pair is cut into equal parts (the last may be smaller).
enum class PartitionScheme {
  none,
  weight_sharing, ///< m: every part reads all of W, and the parts' dW are added up
  dy_sharing,     ///< n: every part reads all of X, and the parts' dX are added up
  ifmap_sharing,  ///< k: every part reads all of dY; no sums
};
inline constexpr int kPartitionSchemes = 4;
std::string_view name_of(PartitionScheme scheme);

struct PartitionedCost {
  PartitionScheme scheme = PartitionScheme::none;
  std::int64_t parts = 1;
  std::int64_t latency_cycles = 0;
  BackwardTraffic traffic;
  BackwardCost part;           ///< of the largest part
  std::int64_t sum_cycles = 0; ///< of adding up partial results, in `latency_cycles`
};

/// The pair in `parts` parts of a scheme. On one core one part after another, each with all of the
/// memory. On machine.cores > 1 side by side, one part per core, each with its share of memory and
/// bandwidth; the cores run in step, so that what all of them read (W, X or dY) crosses once for
/// all and is held once. Results that are added up are written by each part as partial sums, read
/// and written once more at the rate of DRAM, after everything else. InfeasibleError as
/// backward_cost(), and for weight-sharing with `joint_update`.
PartitionedCost partitioned(const GemmPair& pair, const NpuMachine& machine, Technique technique,
                            PartitionScheme scheme, std::int64_t parts,
                            const BackwardOptions& options = {});

/// The fastest of all schemes: on one core 1, 2, 4, ... `max_parts` parts, on several cores as
/// many parts as cores. Ties go to the first scheme, then to fewer parts.
PartitionedCost best_partition(const GemmPair& pair, const NpuMachine& machine, Technique technique,
                               std::int64_t max_parts = 8, const BackwardOptions& options = {});

/// A layer as the paper's guess sees it, and what each scheme takes.
struct PartitionSample {
  std::array<double, 6> dims{}; ///< rows and columns of dX, dW and dY
  /// Cycles by scheme; at least one is finite. Infinite where it does not fit.
  std::array<double, kPartitionSchemes> cycles{};
};
PartitionSample partition_sample(const GemmPair& pair, const NpuMachine& machine,
                                 Technique technique, std::int64_t max_parts = 8,
                                 const BackwardOptions& options = {});

/// How well nearest neighbours guess the scheme: of `splits` random splits, 80 % of the layers are
/// known and the rest asked, by the majority of the `neighbours` nearest in the logarithm of the
/// dimensions (Euclidean; of equal ones the earlier layer).
struct NeighbourGuess {
  double right = 0;          ///< share of asked layers for which the guess is as fast as the best
  double guessed_cycles = 0; ///< mean over splits of the sum over asked layers
  double exact_cycles = 0;   ///< likewise with the best scheme
};
NeighbourGuess guess_partitions(const std::vector<PartitionSample>& samples, std::uint64_t seed = 1,
                                int splits = 1000, int neighbours = 3);

} // namespace monet

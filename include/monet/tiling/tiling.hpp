// Operators -> tiles and the exact dependencies between them.
#pragma once

#include "monet/core_cost/mapping_file.hpp"
#include "monet/hardware/chip.hpp"
#include "monet/training_graph/training.hpp"

#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace monet {

/// A box of an operator's iteration space, run by one core at a stretch. Which box:
/// TileGraph::ranges().
struct Tile {
  OpId op;
  CoreId core; ///< where it runs
};

/// The tile that owns the edge reads what `from` wrote.
struct TileEdge {
  TileId from;
  TensorId tensor;
  Bits bits; ///< size of the overlap
};

/// A loop cut into so many parts. A loop that is cut again has its earlier parts cut further.
struct LoopCut {
  std::uint32_t dim = 0; ///< index into LoopNest::dims
  std::uint32_t count = 1;

  friend bool operator==(const LoopCut&, const LoopCut&) = default;
};

/// The tiles of an operator: a grid over its loops. The tile's index counts through the cuts, the
/// first one outermost.
struct OperatorTiling {
  std::uint32_t first = 0; ///< tiles [first, last)
  std::uint32_t last = 0;
  std::vector<LoopCut> cuts;
  std::uint32_t slice_cuts = 0; ///< so many of the first cuts make slices, the rest shares them out
  std::vector<std::vector<Interval>> parts; ///< per loop; one for a loop that is not cut

  std::uint32_t size() const { return last - first; }
};

/// An operator that writes into the storage of what another one reads: it comes after. So does what
/// is fetched from the host, after an operator shortly before it.
struct AntiDependence {
  OpId reader;
  OpId writer;
  /// (tile of the reader, tile of the writer) where regions meet, by tile of the writer. None: all
  /// tiles of the writer come after all tiles of the reader. Operators of different stacks have
  /// none, nor have those of which most tiles meet most.
  std::vector<std::pair<TileId, TileId>> tiles;
};

struct TileGraph {
  std::vector<Tile> tiles; ///< in topological order, tiles of an operator side by side
  std::vector<OperatorTiling> operators;
  std::vector<std::uint32_t> first_edge{0};     ///< per tile and one more: where its edges begin
  std::vector<TileEdge> edges;                  ///< of one tile: sorted by (from, tensor)
  std::vector<AntiDependence> anti_dependences; ///< by writer
  std::vector<std::uint32_t> rank;              ///< per tile: its place in the order of scheduling
  std::vector<std::uint32_t> stack_of;          ///< per operator; operators of a stack are fused
  /// Per tile of stacks that take turns: which one, and no earlier than those that it waits for. A
  /// turn begins when all tiles of the one before have their place. kNoTurn for others and for
  /// updates; empty where no stack takes turns.
  std::vector<std::uint32_t> turn;
  static constexpr std::uint32_t kNoTurn = UINT32_MAX;
  bool takes_turns(TileId tile) const { return !turn.empty() && turn[tile.index()] != kNoTurn; }

  /// What the tile reads of others.
  std::span<const TileEdge> edges_into(TileId tile) const {
    const std::uint32_t begin = first_edge[tile.index()];
    return {edges.data() + begin, first_edge[tile.index() + 1] - begin};
  }
  /// Tiles [first, last) of the operator.
  std::pair<std::uint32_t, std::uint32_t> tiles_of(OpId op) const {
    return {operators[op.index()].first, operators[op.index()].last};
  }
  /// The tile's box: one interval per loop of the operator's nest.
  std::vector<Interval> ranges(TileId tile) const;
  /// The same into `out`, which keeps its storage.
  void ranges(TileId tile, std::vector<Interval>& out) const;
};

enum class TilingMode {
  layer_by_layer, ///< every operator on its own, cut over cores
  fused,          ///< operators of a stack are cut into slices too, which interleave
};

/// What becomes of elements that two slices of a consumer need.
enum class Halo {
  cached,    ///< made once, by the slice that needs them first, and kept for the other
  recomputed ///< made by both: slices are independent of each other, for more operations
};

/// Where one operator runs and how its slices are shared out. Tile i of a slice runs on core
/// i modulo the number of cores.
struct OperatorAllocation {
  std::vector<CoreId> cores; ///< none: make_tiles() chooses cores and cuts
  std::vector<LoopCut> cuts; ///< of every slice, the first outermost; none: one tile per slice

  friend bool operator==(const OperatorAllocation&, const OperatorAllocation&) = default;
};
using CoreAllocation = std::vector<OperatorAllocation>; ///< per operator

/// How a stack is cut into slices.
struct StackSlices {
  /// A loop of one member, cut evenly; loops of the others follow through what they read of it.
  struct Cut {
    OpId op;
    std::uint32_t dim = 0; ///< index into LoopNest::dims; one that is cut into tiles or sums
    std::int64_t count = 1;
    friend bool operator==(const Cut&, const Cut&) = default;
  };
  std::vector<Cut> cuts;    ///< the first outermost; none: operators stay whole
  std::optional<Halo> halo; ///< none: as TilingOptions says
  /// All stacks of a plan with more than one turn, which have equally many, take turns: the first
  /// slices of each, then the next ones of each. With a slice for every image, the step runs image
  /// by image.
  std::int64_t turns = 1;
  static constexpr std::int64_t kMaxTurns = 1024;
  friend bool operator==(const StackSlices&, const StackSlices&) = default;
};

/// Which operators run together, and how they are sliced.
struct FusionPlan {
  std::vector<std::vector<OpId>> stacks; ///< each operator at most once; the rest run alone
  /// Per stack; none, or missing at the end: the tool's choice.
  std::vector<std::optional<StackSlices>> slices;
  /// Per core of the chip: it is idle, see TilingOptions::idle. Empty: as TilingOptions says.
  std::vector<bool> idle = {};
  friend bool operator==(const FusionPlan&, const FusionPlan&) = default;
};

struct TilingOptions {
  const MappingFile* mapping = nullptr; ///< null = automatic
  TilingMode mode = TilingMode::layer_by_layer;
  /// Fused: which operators run together, each at most once; those not named run alone. None: the
  /// tool's choice. See resolve_stacks().
  std::optional<std::vector<std::vector<OpId>>> stacks;
  Halo halo = Halo::cached;
  /// In place of the mapping's cores and factors over cores, of which stacks and slices are still
  /// made. See monet/tiling/allocation.hpp.
  const CoreAllocation* allocation = nullptr;
  std::vector<std::optional<StackSlices>> slices; ///< of `stacks`, as in FusionPlan
  /// Per core of the chip: it runs nothing that another one may run, unless the mapping says so.
  /// Empty: none does, and choose_step() may let some of them.
  std::vector<bool> idle;

  /// The same, fused as the plan says.
  TilingOptions with(FusionPlan plan) const;
};

/// Each operator is cut over the cores that may run it: as the mapping says, else along the output
/// loop that divides the work best without splitting a reduction. Fused, the operators of a stack
/// are cut into slices before that: by the mapping's intra-core factors, else so that what a slice
/// needs fits on the chip. Boundary tiles are smaller, never padded. InfeasibleError naming the
/// operators that no core may run; InputError for cores that do not exist, and factors that make
/// more tiles than anybody can mean.
TileGraph make_tiles(const TrainingGraph& step, const Chip& chip,
                     const TilingOptions& options = {});

/// The stacks and slices that make_tiles() chooses, fused, where `options` leaves them to it. Given
/// as `stacks` and `slices` they make the same tiles; stacks that a mapping slices are left to the
/// tool.
FusionPlan automatic_fusion(const TrainingGraph& step, const Chip& chip,
                            const TilingOptions& options = {});
/// What runs together in make_tiles(): nothing layer by layer; else the options' stacks, as they
/// say it, or automatic_fusion().
FusionPlan fusion_of(const TrainingGraph& step, const Chip& chip, const TilingOptions& options);

/// One InputError with every entry of a mapping file that is of no use: of a layer or over a loop
/// that none of the graphs has (check_subjects()), or for a core that is no compute core of the
/// chip.
void check_mapping(const MappingFile& mapping, const Chip& chip,
                   std::span<const Graph* const> graphs);

/// Whether the loop may be cut into slices: its parts of the outputs are disjoint, or add up.
bool may_slice(const LoopNest& nest, std::size_t dim);

/// Multiply-accumulates that tiles do beyond those of the operators: recomputed halos.
std::int64_t recomputed_macs(const TileGraph& tiles, const Graph& graph);

/// Invariants as InternalError: the tiles of an operator partition its iteration space, or cover it
/// where halos are recomputed; every read region is covered by edges and tensors without producer;
/// tiles that add into one piece form a chain; edges go forward, in ids and in ranks; what is
/// overwritten has been read before, in ranks.
void verify(const TileGraph& tiles, const TrainingGraph& step);

} // namespace monet

// make_tiles(): partitions the operators of a step into tiles, with their exact dependences.
// Example:
//   std::size_t count_fused_tiles(const TrainingGraph& step, const Chip& chip) {
//     TilingOptions options;
//     options.mode = TilingMode::fused;
//     return make_tiles(step, chip, options).tiles.size();
//   }
#pragma once

#include "monet/core_cost/mapping_file.hpp"
#include "monet/hardware/chip.hpp"
#include "monet/training_graph/training.hpp"

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace monet {

/// A box of an operator's iteration space that one core runs without interruption;
/// TileGraph::ranges() returns the box.
struct Tile {
  OpId op;
  CoreId core; ///< core that runs the tile
};

/// A dependence: the tile that owns the edge reads data that `from` wrote.
struct TileEdge {
  TileId from;
  TensorId tensor;
  Bits bits; ///< size of the overlap
};

/// Partition of a loop into `count` parts. A loop may be cut again, which divides each part.
struct LoopCut {
  std::uint32_t dim = 0; ///< index into LoopNest::dims
  std::uint32_t count = 1;

  friend bool operator==(const LoopCut&, const LoopCut&) = default;
};

/// Tiles of an operator, which form a grid over its loops. Tiles are numbered through the cuts,
/// with the first cut outermost.
struct OperatorTiling {
  std::uint32_t first = 0; ///< tiles [first, last)
  std::uint32_t last = 0;
  std::vector<LoopCut> cuts;
  /// Number of leading cuts that make slices; the other cuts distribute a slice over cores.
  std::uint32_t slice_cuts = 0;
  std::vector<std::vector<Interval>> parts; ///< per loop; one part for a loop that is not cut

  std::uint32_t size() const { return last - first; }
};

/// Ordering without data: the writer runs after the reader, whose storage it overwrites. A fetch
/// from the host is also a writer; its reader is an operator shortly before it.
struct AntiDependence {
  OpId reader;
  OpId writer;
  /// Pairs (tile of the reader, tile of the writer) whose regions meet, sorted by the writer's
  /// tile. Empty: all tiles of the writer run after all tiles of the reader. This is the case for
  /// operators of different stacks, and if most tiles meet most others.
  std::vector<std::pair<TileId, TileId>> tiles;
};

/// Tiles of a step with their dependences and scheduling order.
struct TileGraph {
  std::vector<Tile> tiles; ///< in topological order; an operator's tiles are consecutive
  std::vector<OperatorTiling> operators;
  std::vector<std::uint32_t> first_edge{0}; ///< per tile and one more: index of its first edge
  std::vector<TileEdge> edges; ///< grouped by tile; sorted by (from, tensor) within a tile
  std::vector<AntiDependence> anti_dependences; ///< sorted by writer
  std::vector<std::uint32_t> rank;              ///< per tile: its position in the scheduling order
  std::vector<std::uint32_t> stack_of; ///< per operator; operators with the same stack are fused
  /// Turn of each tile in stacks that take turns; at least the turns of all tiles that it waits
  /// for. A turn begins when all tiles of the previous turn are placed. kNoTurn for other tiles and
  /// for updates; empty if no stack takes turns.
  std::vector<std::uint32_t> turn;
  /// Value of `turn` for tiles outside turns.
  static constexpr std::uint32_t kNoTurn = UINT32_MAX;
  /// Whether the tile is in a stack that takes turns.
  bool takes_turns(TileId tile) const { return !turn.empty() && turn[tile.index()] != kNoTurn; }

  /// Edges of the tile: data that it reads from other tiles.
  std::span<const TileEdge> edges_into(TileId tile) const {
    const std::uint32_t begin = first_edge[tile.index()];
    return {edges.data() + begin, first_edge[tile.index() + 1] - begin};
  }
  /// Range [first, last) of the operator's tiles.
  std::pair<std::uint32_t, std::uint32_t> tiles_of(OpId op) const {
    return {operators[op.index()].first, operators[op.index()].last};
  }
  /// Box of the tile: one interval per loop of the operator's nest.
  std::vector<Interval> ranges(TileId tile) const;
  /// Writes the box of the tile to `out`, reusing its storage.
  void ranges(TileId tile, std::vector<Interval>& out) const;
};

/// Mode of make_tiles().
enum class TilingMode {
  layer_by_layer, ///< operators run separately, partitioned over cores
  fused,          ///< operators of a stack are also cut into slices, which interleave
};

/// Handling of elements that two slices of a consumer need.
enum class Halo {
  cached,    ///< computed once, by the slice that needs them first, and kept
  recomputed ///< computed by both slices, which are independent, at the cost of more operations
};

/// Placement of one operator: its cores and the partition of its slices. Tile i of a slice runs on
/// core i modulo the number of cores.
struct OperatorAllocation {
  std::vector<CoreId> cores; ///< empty: make_tiles() selects cores and cuts
  std::vector<LoopCut> cuts; ///< of every slice, first outermost; empty: one tile per slice

  friend bool operator==(const OperatorAllocation&, const OperatorAllocation&) = default;
};
using CoreAllocation = std::vector<OperatorAllocation>; ///< per operator

/// Slices of a stack.
struct StackSlices {
  /// A loop of one member that is cut evenly. Loops of other members follow through the data that
  /// the member reads from them.
  struct Cut {
    OpId op;
    /// Index into LoopNest::dims of a loop that can be cut into tiles, possibly with sums.
    std::uint32_t dim = 0;
    std::int64_t count = 1;
    friend bool operator==(const Cut&, const Cut&) = default;
  };
  std::vector<Cut> cuts;    ///< first outermost; empty: operators are not sliced
  std::optional<Halo> halo; ///< nullopt: TilingOptions::halo
  /// Number of turns; equal in all stacks that have more than one. In each turn, each of these
  /// stacks runs its next share of slices. With a slice per image, the step runs image by image.
  std::int64_t turns = 1;
  /// Maximum number of turns.
  static constexpr std::int64_t kMaxTurns = 1024;
  friend bool operator==(const StackSlices&, const StackSlices&) = default;
};

/// Stacks of operators that run together, with their slices.
struct FusionPlan {
  std::vector<std::vector<OpId>> stacks; ///< each operator at most once; others run alone
  /// Slices per stack; make_tiles() selects those that are nullopt or missing at the end.
  std::vector<std::optional<StackSlices>> slices;
  /// Per core of the chip: whether it is idle, see TilingOptions::idle. Empty: TilingOptions
  /// decides.
  std::vector<bool> idle = {};
  friend bool operator==(const FusionPlan&, const FusionPlan&) = default;
};

/// Options of make_tiles().
struct TilingOptions {
  const MappingFile* mapping = nullptr; ///< null: automatic
  TilingMode mode = TilingMode::layer_by_layer;
  /// Fused mode: stacks of operators, each operator at most once; others run alone. nullopt:
  /// make_tiles() selects the stacks. See resolve_stacks().
  std::optional<std::vector<std::vector<OpId>>> stacks;
  Halo halo = Halo::cached;
  /// Allocation that replaces the mapping's cores and factors over cores. Stacks and slices still
  /// follow from the mapping. See monet/tiling/allocation.hpp. May be null.
  const CoreAllocation* allocation = nullptr;
  std::vector<std::optional<StackSlices>> slices; ///< of `stacks`, as in FusionPlan
  /// Per core of the chip: whether it runs nothing that another core can run, unless the mapping
  /// requires it. Empty: no core is idle, but choose_step() may try idle cores.
  std::vector<bool> idle;

  /// Copy of the options in fused mode with this plan.
  TilingOptions with(FusionPlan plan) const;
};

/// Partitions each operator over the cores that can run it. The mapping determines the partition.
/// Without a mapping, it is the cut along one parallel loop with the fewest estimated cycles; small
/// operators stay whole. In fused mode, the operators of a stack are first cut into slices. These
/// come from the options, from the mapping's intra-core factors, or are chosen so that their data
/// fit on the chip. Boundary tiles are smaller, never padded. Throws InfeasibleError for operators
/// that no core can run, and for more than 2^24 tiles. Throws InputError for cores that do not
/// exist, and for factors that make too many tiles of one operator.
TileGraph make_tiles(const TrainingGraph& step, const Chip& chip,
                     const TilingOptions& options = {});

/// Stacks and slices that make_tiles() selects in fused mode if `options` leaves them open. Slices
/// are nullopt for stacks that a mapping slices. Without such stacks, the plan makes the same tiles
/// as `stacks` and `slices` of the options.
FusionPlan automatic_fusion(const TrainingGraph& step, const Chip& chip,
                            const TilingOptions& options = {});
/// Stacks and slices that make_tiles() uses: none layer by layer; otherwise those of the options,
/// or of automatic_fusion().
FusionPlan fusion_of(const TrainingGraph& step, const Chip& chip, const TilingOptions& options);

/// Checks a mapping file against graphs and a chip. Throws one InputError with every entry that has
/// no effect. Such an entry is for a layer or loop that all graphs lack (check_subjects()), or for
/// a core that is not a compute core of the chip.
void check_mapping(const MappingFile& mapping, const Chip& chip,
                   std::span<const Graph* const> graphs);

/// Whether the loop can be cut into slices: its parts of the outputs are disjoint, or add up.
bool may_slice(const LoopNest& nest, std::size_t dim);

/// Multiply-accumulates of tiles in addition to those of the operators, due to recomputed halos.
std::int64_t recomputed_macs(const TileGraph& tiles, const Graph& graph);

/// Checks the invariants of tiles and throws InternalError if one is violated:
/// - an operator's tiles partition its iteration space, or cover it with recomputed halos;
/// - edges and tensors without producer cover every region that is read;
/// - tiles that add to one piece form a chain;
/// - edges go forward, in ids and in ranks, and storage is read before it is overwritten, in ranks.
void verify(const TileGraph& tiles, const TrainingGraph& step);

/// Finds fusion plans for any number of chips; the parts that do not depend on the chip are
/// computed once.
///
/// A plan partitions the operators, in their order, into groups of up to 8 neighbours. Updates may
/// join the operator that produces their gradient. The price of a group and its slices combines the
/// cycles of cores, links and off-chip port. With n slices, all but 1/n of their possible overlap
/// is achieved. Tensors that only the group needs cause no traffic. Data that every slice
/// needs and that the cores cannot keep cause traffic once per slice. Slices that do not fit into
/// the cores' memories are excluded. A dynamic program over the order finds the cheapest plan.
class FusionCovers {
public:
  /// Function that returns, per operator, the cycles that the busiest core computes under a plan;
  /// the empty plan is layer by layer. An empty result means that some tile has no mapping.
  using PlanCycles = std::function<std::vector<double>(const FusionPlan&)>;

  /// Plans with their closed-form estimates, and the estimate for layer by layer.
  struct Estimates {
    std::vector<FusionPlan> plans;
    std::vector<double> cycles; ///< estimated latency per plan
    double cycles_apart = 0;    ///< estimated latency of layer by layer
  };

  /// Minimum benefit per tile as a fraction of the step's cycles, so that plans found without
  /// PlanCycles are fast to schedule.
  static constexpr double kTile = 3e-6;

  /// Prepares the search. Keeps a reference to `step`, whose views must be folded.
  explicit FusionCovers(const TrainingGraph& step, Halo halo = Halo::cached);
  ~FusionCovers();
  FusionCovers(const FusionCovers&) = delete;
  FusionCovers& operator=(const FusionCovers&) = delete;

  /// Finds the cheapest plans by latency, by latency and traffic, and by traffic. Of these, the
  /// first two are also found with half the memory, and the first with a quarter; equal plans are
  /// listed once. The result is empty if no group is better than separate operators. The options'
  /// mapping assigns operators to cores. `cycles` is called for layer by layer and for a few
  /// intermediate plans, from which other slices are estimated. If it is empty, all lanes are
  /// assumed busy, and there is one plan, the cheapest by latency and tiles. Thread-safe. Throws
  /// the exceptions of make_tiles().
  Estimates plans(const Chip& chip, const TilingOptions& options,
                  const PlanCycles& cycles = {}) const;

  /// Plan of automatic_fusion(), computed once for all chips with the same memory sizes.
  /// Thread-safe.
  FusionPlan stacks_by_memory(const Chip& chip, const TilingOptions& options) const;

private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// Per operator of the update phase: the latest producer of its inputs, which makes its gradient.
/// nullopt if that producer is an update, and for operators of other phases.
std::vector<std::optional<OpId>> gradient_makers(const Graph& graph);

} // namespace monet

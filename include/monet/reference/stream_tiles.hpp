// make_stream_workload(): a network as the reference scheduler Stream (upstream 303f9dc) sees it.
// It has layers with named loops, tiles of equal size, tensors, and dependences between tiles. This
// is the first half of `--model stream-coala`; docs/explanation/stream-coala.md lists similarities
// and differences.
//
// All types are plain data, indexed by position. The default model does not use them; its tiles are
// in tiling.hpp.
// Example:
//   std::size_t count_tiles(const Graph& network, const Chip& chip) {
//     const MappingFile mapping = read_mapping("examples/stream/quad_core_mapping.yaml");
//     StreamOptions options;
//     options.mode = StreamOptions::Mode::layer_by_layer;
//     return make_stream_workload(network, chip, mapping, options).tiles.size();
//   }
#pragma once

#include "monet/base/interval.hpp"
#include "monet/core_cost/mapping_file.hpp"
#include "monet/hardware/chip.hpp"
#include "monet/workload/graph.hpp"

#include <array>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace monet::stream {

/// Operands of a layer's equation O += I * W. Their memory operands are O for O, I1 for I and I2
/// for W.
enum class Operand : std::uint8_t { O, I, W };
inline constexpr std::size_t kOperands = 3;
/// Memory operand of an operand: O, I1 or I2.
MemoryOperand memory_of(Operand operand);
/// Letter of an operand: 'O', 'I' or 'W'.
char letter_of(Operand operand);

/// A loop of a layer, with its size at four stages of the preparation; the model uses all four.
struct Dim {
  std::string name; ///< "B", "K", "OY", ...; unique in its layer
  /// Size in the network, which decides the last iteration.
  std::int64_t parsed = 1;
  std::int64_t size = 1;   ///< rounded up to a multiple of the intra-core factor (layer_dim_sizes)
  std::int64_t padded = 1; ///< rounded up to a multiple of all factors
  std::int64_t tile = 1;   ///< padded / product of the factors, the same for all tiles
};

/// An axis indexed by two loops, such as IX = stride * OX + dilation * FX - padding.
struct PartialDim {
  std::string name; ///< "IX" or "IY"
  /// Indices of the two loops in Layer::dims.
  std::array<std::uint32_t, 2> dims{};
  std::array<std::int64_t, 2> coefficients{1, 1};
  std::int64_t pad_begin = 0;
  std::int64_t pad_end = 0;
  std::int64_t size = 1; ///< size of the tensor's axis, without padding
};

/// Origin of an operand.
enum class Source : std::uint8_t {
  /// Not in the equation, or not read (the image of a pooling layer that is first).
  absent,
  constant, ///< in the off-chip memory from the start
  layer,    ///< output of other layers, possibly through dummy and layout nodes
};

/// Use of an operand by a layer: axes, precision and origin.
struct OperandUse {
  /// Axes in the equation: index i is dims[i] if i < dims.size(), else partial[i - dims.size()].
  std::vector<std::uint32_t> axes;
  int bits = 8;         ///< bits per stored element; for O: final (O_final)
  int partial_bits = 8; ///< for O: bits per intermediate element; else equal to `bits`
  Source source = Source::absent;
};

/// Splitting of one loop into `count` parts; `dim` is an index into Layer::dims.
struct Factor {
  std::uint32_t dim = 0;
  std::int64_t count = 1;
};

/// A layer of the workload: loops, operands, splits and cores.
struct Layer {
  int id = 0; ///< id in the reference: running counter over the network's nodes
  OpId op;    ///< operator that the layer is made from; a softmax yields four layers
  /// Name of the node, with "-max/", "-exp/", "-sum/" or "-div/" for the parts of a softmax.
  std::string name;
  /// Type in lower case: "conv", "pooling", "gemm", "matmul", "add", "relu", "max", "exp", ...
  std::string type;
  std::vector<Dim> dims;
  std::vector<PartialDim> partial;
  std::array<OperandUse, kOperands> operands; ///< indexed by Operand
  std::vector<Operand> equation;  ///< operands in the order of the equation: O, W, I or O, I, W
  std::vector<Operand> constants; ///< constants in the order in which a tile requests them: W, I
  std::vector<Factor> inter;      ///< splits over cores; never empty
  std::vector<Factor> intra;      ///< splits over time; empty for a layer alone in its stack
  /// Product of the counts of `inter`; each tile's transfers use 1/inter_splits of a link.
  std::int64_t inter_splits = 1;
  /// Cores in core_allocation; possibly several of which only one is used.
  std::vector<CoreId> cores;
  /// Unrolling by array dimension, for cores whose file has no dataflow.
  std::map<std::string, std::vector<Unrolling>> spatial_mapping;
  std::uint32_t stack = 0; ///< index of its stack
  /// Whether the layer is alone in its stack, so that all operands stream from and to the off-chip
  /// memory.
  bool alone = false;
  /// Its first tile; the layer's tiles are [first_tile, first_tile + tiles), by sub id.
  std::uint32_t first_tile = 0;
  std::uint32_t tiles = 0;
  /// Whether no tile has a successor, not even in the layer itself; the outputs are then written
  /// off-chip.
  bool sink = false;
  /// Index of its first tile's ranges in Workload::all_ranges.
  std::uint32_t first_range = 0;

  /// Number of axes: loops and partial axes.
  std::size_t axes() const { return dims.size() + partial.size(); }
  /// Use of an operand by this layer.
  const OperandUse& use(Operand operand) const {
    return operands[static_cast<std::size_t>(operand)];
  }
  OperandUse& use(Operand operand) { return operands[static_cast<std::size_t>(operand)]; }
  /// Name of an axis; partial axes follow the loops.
  const std::string& axis_name(std::size_t axis) const {
    return axis < dims.size() ? dims[axis].name : partial[axis - dims.size()].name;
  }
};

/// A tensor that tiles read or write. Tiles of a layer with the same operand and ranges share one.
struct Tensor {
  std::uint32_t layer = 0; ///< origin: the layer that its name (layer, sub id, operand) refers to
  std::uint32_t tile = 0;  ///< origin: the first tile that has it
  Operand operand = Operand::O;
  bool constant = false; ///< whether its source is Source::constant
  /// Whether the tensor is in the off-chip memory from the start: a constant, or an input of a tile
  /// without incoming edges.
  bool initially_offchip = false;
  /// Size of the tensor.
  Bits bits;
  /// Priority of a constant: the product of the factors along which the operand does not change.
  /// Every memory instance that uses the constant receives it, so that shared constants are never
  /// freed.
  std::int64_t base_priority = 0;
};

/// A tile, called computation node ("CN") in the reference and named (layer id, sub id).
struct Tile {
  std::uint32_t layer = 0;
  std::uint32_t sub = 0;
  std::uint32_t group = 0; ///< index of its inter-core split
  /// Core of the tile: layer.cores[group], or the first core for groups beyond the list.
  CoreId core;
  /// Number of predecessors in other layers; part of the key of the core cost.
  std::uint32_t real_predecessors = 0;
  std::array<std::uint32_t, kOperands> tensors{kNone, kNone, kNone}; ///< indexed by Operand
  /// Whether all reduction loops, which do not index the output, are at their last iteration.
  bool final_output = false;
};

/// A dependence: the consumer waits for tile `from`. Parallel edges between two tiles are merged.
struct Edge {
  std::uint32_t from = 0;
  /// Operand of the consumer; O: an order between tiles of one layer, without data.
  Operand operand = Operand::O;
  /// Size of the whole output of `from`, whatever the overlap; 0 for an edge without data.
  Bits bits;

  bool carries_data() const { return operand != Operand::O; }
};

/// A case where the reference stops or makes a mistake, and our action instead.
struct Note {
  std::string name; ///< name of the difference in docs/explanation/stream-coala.md
  std::string node;
  std::string what;
};

/// A workload of `--model stream-coala`.
struct Workload {
  std::vector<Layer> layers;   ///< indexed by id
  std::vector<Tile> tiles;     ///< sorted by (layer id, sub id)
  std::vector<Tensor> tensors; ///< sorted by first tile, then in the order of the equation
  std::vector<Edge> edges;     ///< grouped by consumer; sorted by (layer id, sub id) of `from`
  std::vector<std::uint32_t> first_edge;          ///< per tile, and one more at the end
  std::vector<std::uint32_t> successors;          ///< tiles, grouped by producer, ascending
  std::vector<std::uint32_t> first_successor;     ///< per tile, and one more at the end
  std::vector<std::uint32_t> order;               ///< tiles in scheduling order
  std::vector<std::uint32_t> rank;                ///< per tile: its position in `order`
  std::vector<std::vector<std::uint32_t>> stacks; ///< layers of each stack, in its order
  /// Ranges of all tiles, see ranges().
  std::vector<Interval> all_ranges;
  std::vector<Note> notes;

  /// Edges whose consumer is the tile.
  std::span<const Edge> edges_into(std::uint32_t tile) const {
    return {edges.data() + first_edge[tile], edges.data() + first_edge[tile + 1]};
  }
  /// Tiles that wait for the tile, ascending.
  std::span<const std::uint32_t> successors_of(std::uint32_t tile) const {
    return {successors.data() + first_successor[tile],
            successors.data() + first_successor[tile + 1]};
  }
  /// Ranges of a tile, one interval per axis of its layer: loops, then partial axes, including
  /// padding.
  std::span<const Interval> ranges(std::uint32_t tile) const {
    const Layer& layer = layers[tiles[tile].layer];
    return {all_ranges.data() + layer.first_range + tiles[tile].sub * layer.axes(), layer.axes()};
  }
  /// Name of a tensor, such as "Tensor(3, 0, W)".
  std::string name_of(const Tensor& tensor) const;
};

/// Options of make_stream_workload().
struct StreamOptions {
  enum class Mode { layer_by_layer, fused };
  Mode mode = Mode::fused;
  /// Ids of the layers of each stack; all other layers are alone in their stacks. Empty: layers
  /// join the first stack until their weights exceed the cores' weight memories.
  std::vector<std::vector<int>> stacks;
  /// Whether a pooling layer processes every channel once per channel, as Stream does, or once.
  bool pools_channels_twice = true;
};

/// Makes the workload of a network for inference. `network` is the result of read_onnx() before
/// fold_views(). Throws InputError for a mapping without a `default` entry or with cores that the
/// chip lacks.
Workload make_stream_workload(const Graph& network, const Chip& chip, const MappingFile& mapping,
                              const StreamOptions& options = {});

/// Cost of one tile on its core.
struct TileCost {
  double runtime = 0;    ///< cycles; not rounded, as in the reference
  double onchip_pj = 0;  ///< energy of the array and on-chip memories
  double offchip_pj = 0; ///< energy of off-chip accesses of streamed operands
  /// Operands that are too large for the core and stream from or to the off-chip memory, in the
  /// reference's order.
  std::vector<MemoryOperand> streamed;
  /// Bandwidth of the off-chip link that each streamed operand uses while the tile runs, in bits
  /// per cycle, by MemoryOperand.
  std::array<std::int64_t, kMemoryOperands> offchip_bandwidth{};

  friend bool operator==(const TileCost&, const TileCost&) = default;
};

/// Costs of all tiles of a workload.
struct Costs {
  /// Different costs, each shared by tiles.
  std::vector<TileCost> classes;
  std::vector<std::uint32_t> of_tile; ///< per tile of the workload: index into `classes`
  std::vector<Note> notes; ///< figures that a file lacked and our own core model supplied

  /// Cost of a tile.
  const TileCost& of(std::uint32_t tile) const { return classes[of_tile[tile]]; }
};

/// Execution of one tile.
struct TileRun {
  CoreId core;
  double start = 0; ///< in cycles
  double end = 0;
};

/// Use of one link by one tensor.
struct LinkEvent {
  enum class Kind : std::uint8_t {
    transfer, ///< the tensor moves from sender to receiver
    block,    ///< a streamed operand reserves bandwidth while its tile runs
  };
  Kind kind = Kind::transfer;
  LinkId link; ///< link of the chip
  CoreId sender;
  CoreId receiver;
  /// Tensor of the workload; for a part, the tensor that it is cut from.
  std::uint32_t tensor = 0;
  Bits bits;        ///< size of the part that moves
  double start = 0; ///< in cycles
  double end = 0;
  std::int64_t bandwidth = 0; ///< booked bandwidth, in bits per cycle
  /// Energy of the link; for a block, the off-chip energy of the tensor's first tile.
  double energy_pj = 0;
};

/// Reason for a movement of data.
enum class Cause : std::uint8_t { offchip, eviction, sink, core_to_core };
/// Number of values of Cause.
inline constexpr std::size_t kCauses = 4;

/// Energy of a schedule, in pJ, by component.
struct EnergyTerms {
  double onchip_pj = 0;                  ///< energy of the tiles
  std::array<double, kCauses> link_pj{}; ///< energy of the links, by Cause
  /// Energy of memories, by Cause; streamed operands count as offchip.
  std::array<double, kCauses> memory_pj{};
  /// Sum of all components, in pJ.
  double total_pj() const;
};

/// Maximum occupancy of an outermost memory.
struct MemoryPeak {
  std::string memory;        ///< name in the core's file
  std::vector<CoreId> cores; ///< several for a shared memory
  Bits capacity;
  Bits peak;
};

/// Result of schedule().
struct Result {
  std::vector<TileRun> runs;     ///< per tile of the workload
  std::vector<LinkEvent> events; ///< in booking order
  EnergyTerms energy;
  double latency = 0; ///< in cycles
  std::vector<MemoryPeak> peaks;
  std::vector<Note> notes; ///< cases where the reference stops or would stop, and our action
};

/// Schedules every tile of a workload. Throws InfeasibleError with tile, tensor, memory and bits if
/// a tensor cannot be stored. It throws no InputError, since the readers have checked all input.
/// The workload's own notes are not repeated.
Result schedule(const Workload& workload, const Chip& chip, const Costs& costs);

} // namespace monet::stream

// The workload as the reference scheduler Stream (upstream 303f9dc) sees it: layers with named
// loops, tiles of equal size, tensors, and which tile waits for which. First half of
// `--model stream-coala`; what is like it and what is not is in docs/explanation/stream-coala.md.
//
// Plain data, indexed by position; nothing here is meant for the default model, whose tiles are
// those of tiling.hpp.
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

/// Operands of a layer's equation O += I * W. In memories O lies in O, I in I1, W in I2.
enum class Operand : std::uint8_t { O, I, W };
inline constexpr std::size_t kOperands = 3;
MemoryOperand memory_of(Operand operand);
/// 'O', 'I' or 'W'.
char letter_of(Operand operand);

/// A loop of a layer. Its size changes on the way; the model uses all four.
struct Dim {
  std::string name;        ///< "B", "K", "OY", ...; unique in its layer
  std::int64_t parsed = 1; ///< as in the network: decides what counts as the last iteration
  std::int64_t size = 1;   ///< rounded up to a multiple of the intra-core factor (layer_dim_sizes)
  std::int64_t padded = 1; ///< rounded up to a multiple of all factors
  std::int64_t tile = 1;   ///< padded / product of the factors: the same for all tiles
};

/// An axis indexed by two loops: IX = stride * OX + dilation * FX - padding.
struct PartialDim {
  std::string name; ///< "IX", "IY"
  std::array<std::uint32_t, 2> dims{};
  std::array<std::int64_t, 2> coefficients{1, 1};
  std::int64_t pad_begin = 0;
  std::int64_t pad_end = 0;
  std::int64_t size = 1; ///< of the tensor's axis, without padding
};

enum class Source : std::uint8_t {
  absent,   ///< not in the equation, or read by nobody (the image of a pooling layer that comes
            ///< first)
  constant, ///< lies in the off-chip memory from the start
  layer,    ///< made by other layers, through any number of dummy and layout nodes
};

struct OperandUse {
  std::vector<std::uint32_t>
      axes;     ///< of the equation: i < dims.size() is dims[i], else partial[i - dims.size()]
  int bits = 8; ///< per element, stored; of O: final (O_final)
  int partial_bits = 8; ///< of O: intermediate; else as bits
  Source source = Source::absent;
};

struct Factor {
  std::uint32_t dim = 0;
  std::int64_t count = 1;
};

struct Layer {
  int id = 0;       ///< the reference's: running counter over the network's nodes
  OpId op;          ///< the operator it comes from; a softmax gives four layers
  std::string name; ///< of the node, with "-max/", "-exp/", "-sum/", "-div/" for parts of a softmax
  std::string
      type; ///< lower case: "conv", "pooling", "gemm", "matmul", "add", "relu", "max", "exp", ...
  std::vector<Dim> dims;
  std::vector<PartialDim> partial;
  std::array<OperandUse, kOperands> operands; ///< by Operand
  std::vector<Operand> equation;  ///< operands in the order of the equation: O, W, I or O, I, W
  std::vector<Operand> constants; ///< in the order in which a tile asks for them: W, I
  std::vector<Factor> inter;      ///< over cores; never empty
  std::vector<Factor> intra;      ///< over time; empty for a layer alone in its stack
  std::int64_t inter_splits =
      1; ///< product of `inter`: a tile's transfers get 1/inter_splits of a link
  std::vector<CoreId> cores; ///< core_allocation; may hold several of which only one is used
  /// By array dim: what cores without dataflow unroll.
  std::map<std::string, std::vector<Unrolling>> spatial_mapping;
  std::uint32_t stack = 0; ///< index of its stack
  bool alone = false; ///< alone in its stack: all operands stream from and to the off-chip memory
  std::uint32_t first_tile = 0; ///< its tiles: [first_tile, first_tile + tiles), by sub id
  std::uint32_t tiles = 0;
  bool sink =
      false; ///< no tile has a successor, intra edges included: outputs are written off-chip
  std::uint32_t first_range = 0; ///< of its first tile, in Workload::all_ranges

  std::size_t axes() const { return dims.size() + partial.size(); }
  const OperandUse& use(Operand operand) const {
    return operands[static_cast<std::size_t>(operand)];
  }
  OperandUse& use(Operand operand) { return operands[static_cast<std::size_t>(operand)]; }
  const std::string& axis_name(std::size_t axis) const {
    return axis < dims.size() ? dims[axis].name : partial[axis - dims.size()].name;
  }
};

/// What a tile reads or writes. Tiles of a layer with the same operand and ranges share one.
struct Tensor {
  std::uint32_t layer = 0; ///< origin: who owns the name (layer, sub id, operand)
  std::uint32_t tile = 0;  ///< origin: the first tile that has it
  Operand operand = Operand::O;
  bool constant = false; ///< Source::constant
  /// Lies in the off-chip memory from the start: constant, or an input of a tile without in-edges.
  bool initially_offchip = false;
  Bits bits;
  /// Of a constant: product of the factors along which the operand does not change. Given to every
  /// memory instance that uses it, so that shared constants are never freed.
  std::int64_t base_priority = 0;
};

/// A computation node ("CN") of the reference. Named (layer id, sub id).
struct Tile {
  std::uint32_t layer = 0;
  std::uint32_t sub = 0;
  std::uint32_t group = 0; ///< which of the inter-core splits
  CoreId core;             ///< layer.cores[group]; the first of them for groups beyond the list
  std::uint32_t real_predecessors = 0; ///< of other layers; part of the key of the core cost
  std::array<std::uint32_t, kOperands> tensors{kNone, kNone, kNone}; ///< by Operand
  bool final_output = false; ///< all loops that the output lacks are at their end
};

/// The consumer waits for `from`. Parallel edges of the same two tiles are one.
struct Edge {
  std::uint32_t from = 0;
  Operand operand =
      Operand::O; ///< of the consumer; O: an order between tiles of one layer, without data
  Bits bits;      ///< all that `from` writes, whatever the overlap; 0 for such an order

  bool carries_data() const { return operand != Operand::O; }
};

/// Something the reference stops at, or does by mistake, and what was done instead.
struct Note {
  std::string name; ///< of the difference in docs/explanation/stream-coala.md
  std::string node;
  std::string what;
};

struct Workload {
  std::vector<Layer> layers;             ///< by id
  std::vector<Tile> tiles;               ///< by (layer id, sub id)
  std::vector<Tensor> tensors;           ///< by first tile, then as in the equation
  std::vector<Edge> edges;               ///< grouped by consumer, by (layer id, sub id) of `from`
  std::vector<std::uint32_t> first_edge; ///< per tile, one more at the end
  std::vector<std::uint32_t> successors; ///< tiles, grouped by producer, ascending
  std::vector<std::uint32_t> first_successor;     ///< per tile, one more at the end
  std::vector<std::uint32_t> order;               ///< tiles in the order of scheduling
  std::vector<std::uint32_t> rank;                ///< per tile: its place in `order`
  std::vector<std::vector<std::uint32_t>> stacks; ///< layers of each stack, in its order
  std::vector<Interval> all_ranges;
  std::vector<Note> notes;

  std::span<const Edge> edges_into(std::uint32_t tile) const {
    return {edges.data() + first_edge[tile], edges.data() + first_edge[tile + 1]};
  }
  std::span<const std::uint32_t> successors_of(std::uint32_t tile) const {
    return {successors.data() + first_successor[tile],
            successors.data() + first_successor[tile + 1]};
  }
  /// One interval per axis of the tile's layer: dims, then partial dims with padding counted in.
  std::span<const Interval> ranges(std::uint32_t tile) const {
    const Layer& layer = layers[tiles[tile].layer];
    return {all_ranges.data() + layer.first_range + tiles[tile].sub * layer.axes(), layer.axes()};
  }
  /// "Tensor(3, 0, W)"
  std::string name_of(const Tensor& tensor) const;
};

struct StreamOptions {
  enum class Mode { layer_by_layer, fused };
  Mode mode = Mode::fused;
  /// Ids of the layers of each stack; the rest are stacks of one. Empty: the first stack takes
  /// layers until their weights exceed the cores' weight memories, the rest are stacks of one.
  std::vector<std::vector<int>> stacks;
  /// Work of a pooling layer: of every channel once for each channel, as Stream has it, or once.
  bool pools_channels_twice = true;
};

/// `network` as read_onnx() gives it, before fold_views(); inference. InputError for a mapping
/// without `default` entry or with cores that the chip lacks.
Workload make_stream_workload(const Graph& network, const Chip& chip, const MappingFile& mapping,
                              const StreamOptions& options = {});

} // namespace monet::stream

// The network as parsed by the reference: one node per operator (four for a softmax), layers for
// computing nodes, and edges between nodes.
#pragma once

#include "monet/reference/stream_tiles.hpp"

namespace monet::stream {

enum class NodeKind : std::uint8_t {
  compute,
  dummy, ///< no cost; dependencies pass through
  transpose,
  reshape,
  flatten,
  gather,
  slice,
  split,
  concat,
};

/// An operand and the node that makes it.
struct NodeSource {
  Operand operand = Operand::I;
  std::uint32_t node = 0;
};

struct Node {
  NodeKind kind = NodeKind::dummy;
  OpId op;
  std::uint32_t layer = kNone;             ///< index of a computing node's layer
  std::vector<NodeSource> sources;         ///< in the reference's order, without constants
  std::vector<std::uint32_t> predecessors; ///< each once, in order of first use
  std::vector<std::uint32_t> successors;   ///< each once, ascending
};

/// Tiling factors of a layer in the mapping file.
struct GivenTiling {
  const std::vector<TilingFactor>* intra = nullptr;
  const std::vector<TilingFactor>* inter = nullptr;
};

struct Network {
  std::vector<Node> nodes; ///< by id
  std::vector<Layer> layers;
  std::vector<GivenTiling> tilings;
  std::vector<Note> notes;
};

/// Parses a network. Throws InputError if the mapping lacks `default` or names cores that the chip
/// lacks.
Network parse_network(const Graph& graph, const Chip& chip, const MappingFile& mapping,
                      bool pools_channels_twice = true);

/// Input of a layer parser.
struct ParseContext {
  const Graph& graph;
  const Operator& op;
  std::uint32_t node = 0;                  ///< id of the first node it makes
  std::vector<std::uint32_t> predecessors; ///< per input made by a node, in order, with repeats
  const std::vector<std::string>& names;   ///< `layer_dimension_names` of its mapping entry
  std::vector<Note>& notes;
  bool pools_channels_twice = true; ///< see StreamOptions
};

using Shape = std::vector<std::int64_t>;

/// A layer and the nodes that make its operands.
struct ParsedLayer {
  Layer layer;
  std::vector<NodeSource> sources;

  ParsedLayer(const ParseContext& context, std::string type);
  /// Adds a loop and returns its index.
  std::uint32_t loop(std::string name, std::int64_t size);
  /// Adds loops with these names and sizes and returns their indices.
  std::vector<std::uint32_t> loops(const std::vector<std::string>& names, const Shape& sizes);
  /// Adds an axis that two loops index and returns its index.
  std::uint32_t partial(PartialDim dim);
  /// Adds an operand to the equation.
  void operand(Operand operand, std::vector<std::uint32_t> axes);
  void precision(Operand operand, int bits, int partial_bits);
  void constant(Operand operand);
  void made_by(Operand operand, std::uint32_t node);
};

/// The layers of an operator; empty for an operator without cost in the reference.
std::vector<ParsedLayer> parse_layers(const ParseContext& context);

} // namespace monet::stream

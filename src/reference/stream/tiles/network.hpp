// The network as the reference parses it: one node per operator (four for a softmax), layers for
// those that compute, and edges between nodes.
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
  std::uint32_t layer = kNone;             ///< of a computing node
  std::vector<NodeSource> sources;         ///< in the reference's order; constants are left out
  std::vector<std::uint32_t> predecessors; ///< each once, in order of first use
  std::vector<std::uint32_t> successors;   ///< each once, ascending
};

/// Tilings as the mapping file gives them, by layer.
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

/// InputError for a mapping without `default` and for cores that the chip lacks.
Network parse_network(const Graph& graph, const Chip& chip, const MappingFile& mapping,
                      bool pools_channels_twice = true);

/// What a parser may look at.
struct ParseContext {
  const Graph& graph;
  const Operator& op;
  std::uint32_t node = 0;                  ///< id of the first node it makes
  std::vector<std::uint32_t> predecessors; ///< per input that a node makes, in order, with repeats
  const std::vector<std::string>& names;   ///< `layer_dimension_names` of its mapping entry
  std::vector<Note>& notes;
  bool pools_channels_twice = true; ///< see StreamOptions
};

using Shape = std::vector<std::int64_t>;

/// A layer with what it reads, as nodes.
struct ParsedLayer {
  Layer layer;
  std::vector<NodeSource> sources;

  ParsedLayer(const ParseContext& context, std::string type);
  /// Index of a new loop.
  std::uint32_t loop(std::string name, std::int64_t size);
  /// New loops of these names and sizes.
  std::vector<std::uint32_t> loops(const std::vector<std::string>& names, const Shape& sizes);
  /// Index of a new axis indexed by two loops.
  std::uint32_t partial(PartialDim dim);
  /// Adds an operand to the equation.
  void operand(Operand operand, std::vector<std::uint32_t> axes);
  void precision(Operand operand, int bits, int partial_bits);
  void constant(Operand operand);
  void made_by(Operand operand, std::uint32_t node);
};

/// The layers of an operator; none for one that the reference gives no cost.
std::vector<ParsedLayer> parse_layers(const ParseContext& context);

} // namespace monet::stream

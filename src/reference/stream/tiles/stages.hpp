// The steps from layers to the finished workload, in their order.
#pragma once

#include "reference/stream/tiles/network.hpp"

namespace monet::stream {

/// More tiles or edges than these are refused: a mapping can ask for a tile per element.
inline constexpr std::uint64_t kMaxTiles = std::uint64_t{1} << 22;
inline constexpr std::uint64_t kMaxEdges = std::uint64_t{1} << 26;

/// Layers of each stack, in its order. Stacks may be empty. InputError for a layer given twice.
std::vector<std::vector<std::uint32_t>> make_stacks(const Network& network, const Chip& chip,
                                                    const StreamOptions& options);

/// Valid factors for every layer: unknown loops dropped, too large factors clipped, loops rounded
/// up, defaults where nothing is left.
void set_tilings(Network& network, const std::vector<std::vector<std::uint32_t>>& stacks,
                 StreamOptions::Mode mode);

/// Tiles with ranges, groups, cores and tensors; sizes of loops in tiles. InfeasibleError beyond
/// kMaxTiles.
void make_tiles(Workload& workload);

/// Tile index as a sum over loops: tile = sum of offsets[dim][part of that dim]. A whole dim has
/// one entry, 0.
std::vector<std::vector<std::uint32_t>> part_offsets(const Layer& layer);
/// Sums of the offsets of all combinations of the parts of `dims`; with `complete` only of parts
/// that reach the end that the network gives their loops.
std::vector<std::uint32_t> combinations(const Layer& layer, const std::vector<std::uint32_t>& dims,
                                        bool complete);
/// Factors > 1, those over cores first: the first runs fastest over the tiles.
std::vector<Factor> outer_loops(const Layer& layer);

/// The tile's results are complete: loops that the output lacks have reached the end that the
/// network gives them.
bool is_complete(const Workload& workload, std::uint32_t tile);

/// Two computing layers with nothing but passive nodes between them.
struct LayerPair {
  std::uint32_t producer = 0; ///< node
  std::uint32_t consumer = 0; ///< node
  bool through_layout = false;
};
/// Every such pair once. Adds notes.
std::vector<LayerPair> find_pairs(Network& network);
/// All paths from producer to consumer over passive nodes, both ends included; at most `most`.
std::vector<std::vector<std::uint32_t>> passive_paths(const Network& network, std::uint32_t from,
                                                      std::uint32_t to, std::size_t most);

/// An edge before edges are grouped.
struct RawEdge {
  std::uint32_t from = 0;
  std::uint32_t to = 0;
  Operand operand = Operand::O;
};
/// InfeasibleError beyond kMaxEdges.
void check_edge_count(std::size_t edges);
/// Operands of the consumer that come from the producer, over dummies only: tiles whose boxes meet.
/// False, and no edge, when boxes have different numbers of axes, where the reference stops.
bool add_box_edges(const Workload& workload, const Network& network, const LayerPair& pair,
                   std::vector<RawEdge>& edges);
/// Over reshapes, transposes and so on: element by element. With `exact` as the operators say,
/// otherwise as the reference does it; then false, with a note and without edges, where it stops.
bool add_layout_edges(const Workload& workload, const Graph& graph, Network& network,
                      const LayerPair& pair, bool exact, std::vector<RawEdge>& edges);

/// Edges inside layers and between them, grouped by consumer; successors; what follows from them.
void make_edges(Workload& workload, const Graph& graph, Network& network);

} // namespace monet::stream

// The steps from parsed layers to the finished workload, in execution order.
#pragma once

#include "reference/stream/tiles/network.hpp"

namespace monet::stream {

/// Maximum numbers of tiles and edges; needed because a mapping can ask for a tile per element.
inline constexpr std::uint64_t kMaxTiles = std::uint64_t{1} << 22;
inline constexpr std::uint64_t kMaxEdges = std::uint64_t{1} << 26;

/// The layers of each stack, in order. Stacks may be empty. Throws InputError for a layer that is
/// given twice.
std::vector<std::vector<std::uint32_t>> make_stacks(const Network& network, const Chip& chip,
                                                    const StreamOptions& options);

/// Sets valid factors for every layer: drops unknown loops, clips too large factors, rounds loops
/// up, and uses defaults if no factor is left.
void set_tilings(Network& network, const std::vector<std::vector<std::uint32_t>>& stacks,
                 StreamOptions::Mode mode);

/// Makes the tiles with ranges, groups, cores and tensors, and sets the loop sizes of tiles. Throws
/// InfeasibleError beyond kMaxTiles.
void make_tiles(Workload& workload);

/// Offsets of tile indices by loop and part: tile = sum of offsets[dim][part of dim]. An uncut loop
/// has the single offset 0.
std::vector<std::vector<std::uint32_t>> part_offsets(const Layer& layer);
/// Sums of offsets for all combinations of the parts of `dims`. With `complete`, only parts that
/// reach the end of their loops in the network.
std::vector<std::uint32_t> combinations(const Layer& layer, const std::vector<std::uint32_t>& dims,
                                        bool complete);
/// Factors above 1, inter-core factors first. The first one varies fastest over the tiles.
std::vector<Factor> outer_loops(const Layer& layer);

/// Whether a tile's results are complete: all loops that the output lacks have reached their end in
/// the network.
bool is_complete(const Workload& workload, std::uint32_t tile);

/// Two computing layers with only passive nodes between them.
struct LayerPair {
  std::uint32_t producer = 0; ///< node
  std::uint32_t consumer = 0; ///< node
  bool through_layout = false;
};
/// All pairs of layers, without duplicates. Adds notes.
std::vector<LayerPair> find_pairs(Network& network);
/// Up to `most` paths from producer to consumer over passive nodes, both ends included.
std::vector<std::vector<std::uint32_t>> passive_paths(const Network& network, std::uint32_t from,
                                                      std::uint32_t to, std::size_t most);

/// An edge before grouping.
struct RawEdge {
  std::uint32_t from = 0;
  std::uint32_t to = 0;
  Operand operand = Operand::O;
};
/// Throws InfeasibleError beyond kMaxEdges.
void check_edge_count(std::size_t edges);
/// Adds edges between tiles with overlapping boxes, for a pair with only dummies in between.
/// Returns false and adds nothing if boxes have different numbers of axes (the reference stops).
bool add_box_edges(const Workload& workload, const Network& network, const LayerPair& pair,
                   std::vector<RawEdge>& edges);
/// Adds edges over layout operators, element by element. `exact`: by the operators' semantics,
/// otherwise like the reference. Returns false, with a note and without edges, if the walk stops.
bool add_layout_edges(const Workload& workload, const Graph& graph, Network& network,
                      const LayerPair& pair, bool exact, std::vector<RawEdge>& edges);

/// Makes all edges within and between layers, grouped by consumer, and the successors. Sets tile,
/// tensor and layer properties that depend on edges.
void make_edges(Workload& workload, const Graph& graph, Network& network);

} // namespace monet::stream

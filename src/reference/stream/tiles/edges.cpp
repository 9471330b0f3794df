// Collects all edges between the tiles of a workload and groups them by consumer. This is the
// fifth step of make_stream_workload() (stream_tiles.cpp).
#include "reference/stream/tiles/stages.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <numeric>

namespace monet::stream {

namespace {

/// Adds edges that order the tiles of each group.
void add_order_edges(const Workload& workload, std::vector<RawEdge>& edges) {
  std::vector<std::uint32_t> last;
  for (const Layer& layer : workload.layers) {
    last.clear();
    for (std::uint32_t tile = layer.first_tile; tile < layer.first_tile + layer.tiles; ++tile) {
      const std::uint32_t group = workload.tiles[tile].group;
      if (group >= last.size())
        last.resize(group + 1, kNone);
      if (last[group] != kNone)
        edges.push_back({last[group], tile, Operand::O});
      last[group] = tile;
    }
  }
}

/// Adds edges from every complete tile to every tile of the consumer: a safe fallback without
/// fusion.
void add_all(const Workload& workload, const Network& network, const LayerPair& pair,
             std::vector<RawEdge>& edges) {
  const Layer& producer = workload.layers[network.nodes[pair.producer].layer];
  const Layer& consumer = workload.layers[network.nodes[pair.consumer].layer];
  for (const NodeSource& source : network.nodes[pair.consumer].sources) {
    const bool direct = source.node == pair.producer;
    if (!direct && (network.nodes[source.node].kind == NodeKind::compute ||
                    passive_paths(network, pair.producer, source.node, 1).empty()))
      continue;
    for (std::uint32_t from = 0; from < producer.tiles; ++from) {
      if (!is_complete(workload, producer.first_tile + from))
        continue;
      for (std::uint32_t to = 0; to < consumer.tiles; ++to)
        edges.push_back({producer.first_tile + from, consumer.first_tile + to, source.operand});
      check_edge_count(edges.size());
    }
  }
}

void add_pair(const Workload& workload, const Graph& graph, Network& network, const LayerPair& pair,
              std::vector<RawEdge>& edges) {
  if (pair.through_layout) {
    if (add_layout_edges(workload, graph, network, pair, false, edges))
      return;
  } else {
    if (add_box_edges(workload, network, pair, edges))
      return;
    const Layer& consumer = workload.layers[network.nodes[pair.consumer].layer];
    network.notes.push_back(
        {"rank", consumer.name,
         fmt::format("reads layer {} with another number of axes", pair.producer)});
  }
  if (!add_layout_edges(workload, graph, network, pair, true, edges))
    add_all(workload, network, pair, edges);
}

/// Groups edges by consumer, then producer. The last of parallel edges is kept, as in the
/// reference's graph.
void group_edges(Workload& workload, const std::vector<RawEdge>& edges) {
  const std::size_t tiles = workload.tiles.size();
  std::vector<std::uint32_t> first(tiles + 1, 0);
  for (const RawEdge& edge : edges)
    ++first[edge.to + 1];
  std::partial_sum(first.begin(), first.end(), first.begin());
  std::vector<std::uint32_t> next(first.begin(), first.end() - 1);
  std::vector<RawEdge> grouped(edges.size());
  for (const RawEdge& edge : edges)
    grouped[next[edge.to]++] = edge;
  workload.first_edge.reserve(tiles + 1);
  workload.edges.reserve(edges.size());
  workload.first_edge.push_back(0);
  for (std::size_t tile = 0; tile < tiles; ++tile) {
    const auto begin = grouped.begin() + first[tile];
    const auto end = grouped.begin() + first[tile + 1];
    std::stable_sort(begin, end,
                     [](const RawEdge& a, const RawEdge& b) { return a.from < b.from; });
    for (auto at = begin; at != end; ++at) {
      if (at + 1 != end && (at + 1)->from == at->from)
        continue;
      Edge edge;
      edge.from = at->from;
      edge.operand = at->operand;
      if (edge.carries_data())
        edge.bits = workload.tensors[workload.tiles[at->from].tensors[0]].bits;
      workload.edges.push_back(edge);
    }
    workload.first_edge.push_back(static_cast<std::uint32_t>(workload.edges.size()));
  }
}

void set_successors(Workload& workload) {
  const std::size_t tiles = workload.tiles.size();
  workload.first_successor.assign(tiles + 1, 0);
  for (const Edge& edge : workload.edges)
    ++workload.first_successor[edge.from + 1];
  std::partial_sum(workload.first_successor.begin(), workload.first_successor.end(),
                   workload.first_successor.begin());
  workload.successors.resize(workload.edges.size());
  std::vector<std::uint32_t> next(workload.first_successor.begin(),
                                  workload.first_successor.end() - 1);
  for (std::uint32_t tile = 0; tile < tiles; ++tile) {
    for (const Edge& edge : workload.edges_into(tile))
      workload.successors[next[edge.from]++] = tile;
  }
}

void set_consequences(Workload& workload) {
  for (Tensor& tensor : workload.tensors)
    tensor.initially_offchip = tensor.constant;
  for (std::uint32_t index = 0; index < workload.tiles.size(); ++index) {
    Tile& tile = workload.tiles[index];
    const auto edges = workload.edges_into(index);
    tile.real_predecessors = static_cast<std::uint32_t>(
        std::ranges::count_if(edges, [](const Edge& e) { return e.carries_data(); }));
    if (!edges.empty())
      continue;
    for (const Operand operand : {Operand::I, Operand::W}) {
      const std::uint32_t tensor = tile.tensors[static_cast<std::size_t>(operand)];
      if (tensor != kNone)
        workload.tensors[tensor].initially_offchip = true;
    }
  }
  for (Layer& layer : workload.layers) {
    layer.sink = workload.first_successor[layer.first_tile] ==
                 workload.first_successor[layer.first_tile + layer.tiles];
  }
}

} // namespace

void check_edge_count(std::size_t edges) {
  if (edges > kMaxEdges) {
    throw InfeasibleError(fmt::format("more than {} dependencies between tiles; fewer or smaller "
                                      "tiling factors are needed",
                                      kMaxEdges));
  }
}

void make_edges(Workload& workload, const Graph& graph, Network& network) {
  std::vector<RawEdge> edges;
  add_order_edges(workload, edges);
  for (const LayerPair& pair : find_pairs(network))
    add_pair(workload, graph, network, pair, edges);
  group_edges(workload, edges);
  set_successors(workload);
  set_consequences(workload);
}

} // namespace monet::stream

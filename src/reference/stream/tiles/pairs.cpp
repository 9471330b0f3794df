// Finds the pairs of layers where one reads the other, and layout operators between them, for
// edges.cpp.
#include "reference/stream/tiles/stages.hpp"
#include "reference/stream/tiles/two_sided_search.hpp"

#include <fmt/core.h>

#include <algorithm>

namespace monet::stream {

namespace {

bool is_layout(const Node& node) {
  return node.kind != NodeKind::compute && node.kind != NodeKind::dummy;
}

/// Computing nodes that read `from` directly or through passive nodes, in order of discovery.
std::vector<std::uint32_t> consumers_of(const Network& network, std::uint32_t from,
                                        std::vector<std::uint32_t>& seen_from) {
  std::vector<std::uint32_t> consumers;
  std::vector<std::uint32_t> open{from};
  while (!open.empty()) {
    const std::uint32_t node = open.back();
    open.pop_back();
    for (const std::uint32_t next : network.nodes[node].successors) {
      if (seen_from[next] == from)
        continue;
      seen_from[next] = from;
      if (network.nodes[next].kind == NodeKind::compute)
        consumers.push_back(next);
      else
        open.push_back(next);
    }
  }
  std::ranges::sort(consumers);
  return consumers;
}

/// Whether a layout node is on some path over passive nodes.
bool any_layout_between(const Network& network, std::uint32_t from, std::uint32_t to) {
  for (const auto& path : passive_paths(network, from, to, 64)) {
    if (std::any_of(path.begin() + 1, path.end() - 1,
                    [&](std::uint32_t node) { return is_layout(network.nodes[node]); }))
      return true;
  }
  return false;
}

} // namespace

std::vector<std::vector<std::uint32_t>> passive_paths(const Network& network, std::uint32_t from,
                                                      std::uint32_t to, std::size_t most) {
  // Only nodes from which `to` can be reached are searched, which avoids dead ends.
  std::vector<bool> useful(network.nodes.size(), false);
  std::vector<std::uint32_t> open{to};
  while (!open.empty()) {
    const std::uint32_t node = open.back();
    open.pop_back();
    for (const std::uint32_t next : network.nodes[node].predecessors) {
      if (!useful[next]) {
        useful[next] = true;
        if (network.nodes[next].kind != NodeKind::compute)
          open.push_back(next);
      }
    }
  }
  std::vector<std::vector<std::uint32_t>> paths, growing{{from}};
  for (std::size_t i = 0; i < growing.size() && paths.size() < most; ++i) {
    const std::vector<std::uint32_t> path = growing[i];
    for (const std::uint32_t next : network.nodes[path.back()].successors) {
      const bool passive = network.nodes[next].kind != NodeKind::compute;
      if (next != to && (!passive || !useful[next] || growing.size() > 64 * most))
        continue;
      std::vector<std::uint32_t>& longer =
          next == to ? paths.emplace_back(path) : growing.emplace_back(path);
      longer.push_back(next);
    }
    growing[i].clear();
  }
  return paths;
}

std::vector<LayerPair> find_pairs(Network& network) {
  std::vector<LayerPair> pairs;
  TwoSidedSearch search(network.nodes.size(), [&](std::uint32_t node, bool ahead) {
    return std::span(ahead ? network.nodes[node].successors : network.nodes[node].predecessors);
  });
  std::vector<std::uint32_t> seen_from(network.nodes.size(), kNone);
  for (std::uint32_t node = 0; node < network.nodes.size(); ++node) {
    if (network.nodes[node].kind != NodeKind::compute)
      continue;
    for (const std::uint32_t consumer : consumers_of(network, node, seen_from)) {
      LayerPair pair{node, consumer, false};
      const auto between = search.between(node, consumer).value_or(std::vector<std::uint32_t>{});
      if (std::ranges::any_of(between, [&](std::uint32_t i) {
            return network.nodes[i].kind == NodeKind::compute;
          })) {
        const Layer& layer = network.layers[network.nodes[consumer].layer];
        network.notes.push_back({"shorter-way", layer.name,
                                 fmt::format("the shortest way from layer {} leads through a "
                                             "layer; the reference stops",
                                             node)});
        pair.through_layout = any_layout_between(network, node, consumer);
      } else {
        pair.through_layout = std::ranges::any_of(
            between, [&](std::uint32_t i) { return is_layout(network.nodes[i]); });
      }
      pairs.push_back(pair);
    }
  }
  return pairs;
}

} // namespace monet::stream

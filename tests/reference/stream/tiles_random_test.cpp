// Random networks and mappings as the reference's tiles: edges against a comparison of all pairs,
// and what holds of every workload.
#include "schedule/small_steps.hpp"
#include "reference/stream/tiles/stages.hpp"
#include "reference/stream/tiles_networks.hpp"

#include "monet/reference/stream_tiles.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>

namespace monet::stream {
namespace {

using monet::testing::make_chip;
using monet::testing::mapping_entry;
using monet::testing::StreamNetwork;

class Dice {
public:
  explicit Dice(std::uint32_t seed) : engine_(seed) {}
  std::size_t below(std::size_t n) { return engine_() % n; }
  template <class T>
  const T& of(const std::vector<T>& list) {
    return list[below(list.size())];
  }

private:
  std::mt19937 engine_; // the same numbers everywhere
};

Graph random_network(Dice& dice) {
  StreamNetwork net;
  std::vector<TensorId> made{net.input({1 + static_cast<std::int64_t>(dice.below(2)), 4,
                                        5 + static_cast<std::int64_t>(dice.below(6)),
                                        5 + static_cast<std::int64_t>(dice.below(6))})};
  for (std::size_t i = 0, n = 2 + dice.below(6); i < n; ++i) {
    const TensorId x = made[made.size() - 1 - dice.below(std::min<std::size_t>(made.size(), 2))];
    const std::int64_t channels = net.shape(x)[1];
    switch (dice.below(6)) {
    case 0:
      made.push_back(net.relu(x));
      break;
    case 1:
      made.push_back(net.max_pool(x, 3, 1 + static_cast<std::int64_t>(dice.below(2))));
      break;
    case 2:
      made.push_back(net.op("Clip", {x}, net.shape(x)));
      break;
    case 3: {
      std::vector<TensorId> same;
      for (const TensorId other : made) {
        if (net.shape(other) == net.shape(x))
          same.push_back(other);
      }
      made.push_back(net.add(x, dice.of(same)));
      break;
    }
    default:
      made.push_back(net.conv(x, dice.below(4) == 0 ? channels : 6, dice.below(2) == 0 ? 3 : 1,
                              1 + static_cast<std::int64_t>(dice.below(2)),
                              dice.below(3) == 0 && channels % 2 == 0 ? 2 : 1));
    }
  }
  return net.graph;
}

MappingFile random_mapping(Dice& dice) {
  const std::vector<std::string> counts{"all", "2", "3", "4", "5"};
  std::string text;
  for (const char* name : {"default", "Conv", "MaxPool", "Add"}) {
    const bool image = std::string(name) == "Conv" || std::string(name) == "MaxPool";
    const std::vector<std::string> loops =
        image ? std::vector<std::string>{"OY", "OX", "K", "C", "G", "FX", "B"}
              : std::vector<std::string>{"D", "K", "H", "B"};
    text += mapping_entry(name, dice.below(2) == 0 ? "0, 1, 2" : "3", // one core, or several
                          dice.of(loops) + ", " + dice.of(counts),
                          dice.of(loops) + ", " + std::to_string(1 + dice.below(4)));
  }
  return parse_mapping(text, "random.yaml");
}

/// An operand's box, both ends included; G and C or K as one axis, as the reference forms it.
std::vector<Interval> box_of(const Workload& workload, std::uint32_t tile, Operand operand) {
  const Layer& layer = workload.layers[workload.tiles[tile].layer];
  const auto ranges = workload.ranges(tile);
  std::vector<Interval> box;
  for (const std::uint32_t axis : layer.operands[static_cast<std::size_t>(operand)].axes) {
    const Interval range{ranges[axis].begin, ranges[axis].end - 1};
    const std::string& name = layer.axis_name(axis);
    if (!layer.partial.empty() && (name == "C" || name == "K") && box.size() == 2)
      box[1] = {box[1].begin + range.begin, box[1].end * layer.dims[axis].size + range.end};
    else
      box.push_back(range);
  }
  return box;
}

bool meet(const std::vector<Interval>& a, const std::vector<Interval>& b) {
  bool all = a.size() == b.size();
  for (std::size_t i = 0; all && i < a.size(); ++i)
    all = a[i].begin <= b[i].end && b[i].begin <= a[i].end;
  return all;
}

/// Edges of a pair that is joined directly or over dummies, by comparing all tiles.
std::set<std::pair<std::uint32_t, std::uint32_t>>
all_pairs(const Workload& workload, const Network& network, const LayerPair& pair) {
  std::set<std::pair<std::uint32_t, std::uint32_t>> edges;
  const Layer& from = workload.layers[network.nodes[pair.producer].layer];
  const Layer& to = workload.layers[network.nodes[pair.consumer].layer];
  for (const NodeSource& source : network.nodes[pair.consumer].sources) {
    std::uint32_t node = source.node; // dummies here have one input
    while (network.nodes[node].kind == NodeKind::dummy && !network.nodes[node].predecessors.empty())
      node = network.nodes[node].predecessors[0];
    for (std::uint32_t a = 0; node == pair.producer && a < from.tiles; ++a) {
      if (!is_complete(workload, from.first_tile + a))
        continue;
      for (std::uint32_t b = 0; b < to.tiles; ++b) {
        if (meet(box_of(workload, from.first_tile + a, Operand::O),
                 box_of(workload, to.first_tile + b, source.operand)))
          edges.emplace(from.first_tile + a, to.first_tile + b);
      }
    }
  }
  return edges;
}

void expect_invariants(const Workload& workload) {
  std::set<std::uint32_t> ordered(workload.order.begin(), workload.order.end());
  EXPECT_EQ(ordered.size(), workload.tiles.size());
  for (std::uint32_t tile = 0; tile < workload.tiles.size(); ++tile) {
    EXPECT_EQ(workload.order[workload.rank[tile]], tile);
    std::uint32_t before = 0;
    for (const Edge& edge : workload.edges_into(tile)) {
      EXPECT_LT(edge.from, tile) << "no cycles";
      EXPECT_TRUE(edge.from >= before) << "in order of producers";
      before = edge.from + 1;
      const auto successors = workload.successors_of(edge.from);
      EXPECT_TRUE(std::binary_search(successors.begin(), successors.end(), tile));
    }
  }
}

TEST(StreamRandom, EdgesAreThoseOfAllPairs) {
  std::size_t compared = 0;
  for (std::uint32_t seed = 0; seed < 600; ++seed) {
    SCOPED_TRACE(seed);
    Dice dice(seed);
    const Graph graph = random_network(dice);
    const MappingFile mapping = random_mapping(dice);
    const Chip chip = make_chip({.cores = 4});
    StreamOptions options;
    options.stacks.emplace_back();
    for (int i = 0; i < 20; ++i)
      options.stacks[0].push_back(i);
    const Workload workload = make_stream_workload(graph, chip, mapping, options);
    expect_invariants(workload);
    Network network = parse_network(graph, chip, mapping);
    for (const LayerPair& pair : find_pairs(network)) {
      std::set<std::pair<std::uint32_t, std::uint32_t>> edges;
      const Layer& from = workload.layers[network.nodes[pair.producer].layer];
      const Layer& to = workload.layers[network.nodes[pair.consumer].layer];
      for (std::uint32_t tile = to.first_tile; tile < to.first_tile + to.tiles; ++tile) {
        for (const Edge& edge : workload.edges_into(tile)) {
          if (edge.carries_data() && edge.from >= from.first_tile &&
              edge.from < from.first_tile + from.tiles)
            edges.emplace(edge.from, tile);
        }
      }
      EXPECT_EQ(edges, all_pairs(workload, network, pair));
      compared += edges.size();
    }
  }
  EXPECT_GT(compared, 10'000);
}

} // namespace
} // namespace monet::stream

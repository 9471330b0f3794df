// The tiles that are tried of each dimension, and the least any range of them costs.
#pragma once

#include "core_cost/joint_mapping/problem.hpp"

#include <array>
#include <cstdint>
#include <vector>

namespace monet::joint_mapping {

/// Tiles of `size` elements, rising: the least for each count of parts, and the multiples of each
/// of `grains` (sides of the array) that are the least for each count of parts of them.
std::vector<std::int64_t> tile_sizes(std::int64_t size, const std::vector<std::int64_t>& grains);

/// Ranges of the tiles of one dimension in halves: node 0 is all of them, 2i+1 and 2i+2 the halves
/// of node i.
class TileRanges {
public:
  struct Node {
    std::uint32_t begin = 0;
    std::uint32_t end = 0;
    std::int64_t least_tile = 0;
    std::int64_t most_tile = 0;
    std::int64_t least_last = 0; ///< elements of the last part
    std::int64_t least_parts = 0;
    std::int64_t most_parts = 0;
    /// By product: the least that this dimension contributes to its cycles.
    std::array<double, 2> least_cycles{};
    bool single() const { return end - begin == 1; }
  };

  TileRanges() = default;
  TileRanges(const PairProblem& problem, int dim, std::vector<std::int64_t> tiles);

  const Node& operator[](std::uint32_t node) const { return nodes_[node]; }
  std::vector<std::int64_t> falling() const { return {tiles_.rbegin(), tiles_.rend()}; }
  std::int64_t tile(std::uint32_t node) const { return nodes_[node].least_tile; }

private:
  Node make(const PairProblem& problem, int dim, std::uint32_t begin, std::uint32_t end,
            std::uint32_t number);

  std::vector<std::int64_t> tiles_;
  std::vector<Node> nodes_;
};

} // namespace monet::joint_mapping

#include "core_cost/joint_mapping/tile_sizes.hpp"

#include "monet/base/units.hpp"

#include <algorithm>
#include <utility>

namespace monet::joint_mapping {
namespace {

/// Beyond so many parts, steps of 1/64: sizes of 2^40 would have two million tiles.
constexpr std::int64_t kManyParts = 2048;

/// ceil(size / parts) for each of its values, falling.
std::vector<std::int64_t> least_tiles(std::int64_t size) {
  std::vector<std::int64_t> tiles{size};
  for (std::int64_t parts = 1; tiles.back() > 1;) {
    const std::int64_t wider = parts < kManyParts ? 0 : parts + parts / 64;
    parts = std::max(ceil_div(size, tiles.back() - 1), wider);
    const std::int64_t tile = ceil_div(size, parts);
    tiles.push_back(tile);
  }
  return tiles;
}

/// What a dimension contributes to the cycles of a product: folds where it lies on the array, what
/// streams with filling and draining else.
double share_of_cycles(const PairProblem& problem, int product, int dim, std::int64_t tile) {
  if (problem.timing == TileTiming::core || problem.timing == TileTiming::none)
    return 0;
  const std::array<int, 3> roles = array_roles(product, problem.timing);
  const std::int64_t size = problem.size[at(dim)];
  const std::int64_t parts = ceil_div(size, tile);
  const std::int64_t last = size - (parts - 1) * tile;
  if (roles[2] == dim)
    return static_cast<double>(size) +
           static_cast<double>(parts) * static_cast<double>(problem.fill);
  const std::int64_t side = roles[0] == dim ? problem.rows : problem.columns;
  return static_cast<double>(parts - 1) * static_cast<double>(ceil_div(tile, side)) +
         static_cast<double>(ceil_div(last, side));
}

} // namespace

std::vector<std::int64_t> tile_sizes(std::int64_t size, const std::vector<std::int64_t>& grains) {
  std::vector<std::int64_t> tiles = least_tiles(size);
  for (const std::int64_t grain : grains) {
    for (const std::int64_t folds : least_tiles(ceil_div(size, grain)))
      tiles.push_back(std::min(folds * grain, size));
  }
  std::sort(tiles.begin(), tiles.end());
  tiles.erase(std::unique(tiles.begin(), tiles.end()), tiles.end());
  return tiles;
}

TileRanges::TileRanges(const PairProblem& problem, int dim, std::vector<std::int64_t> tiles)
    : tiles_(std::move(tiles)) {
  std::size_t room = 1;
  while (room < tiles_.size())
    room *= 2;
  nodes_.resize(2 * room);
  make(problem, dim, 0, static_cast<std::uint32_t>(tiles_.size()), 0);
}

TileRanges::Node TileRanges::make(const PairProblem& problem, int dim, std::uint32_t begin,
                                  std::uint32_t end, std::uint32_t number) {
  Node node;
  if (end - begin == 1) {
    const std::int64_t tile = tiles_[begin];
    node.least_tile = node.most_tile = tile;
    node.least_parts = node.most_parts = ceil_div(problem.size[at(dim)], tile);
    node.least_last = problem.size[at(dim)] - (node.least_parts - 1) * tile;
    for (const int product : {kDx, kDw})
      node.least_cycles[at(product)] = share_of_cycles(problem, product, dim, tile);
  } else {
    const std::uint32_t middle = begin + (end - begin + 1) / 2;
    const Node left = make(problem, dim, begin, middle, 2 * number + 1);
    const Node right = make(problem, dim, middle, end, 2 * number + 2);
    node = left;
    node.most_tile = right.most_tile;
    node.least_last = std::min(left.least_last, right.least_last);
    node.least_parts = right.least_parts;
    for (std::size_t p = 0; p < 2; ++p)
      node.least_cycles[p] = std::min(left.least_cycles[p], right.least_cycles[p]);
  }
  node.begin = begin;
  node.end = end;
  nodes_[number] = node;
  return node;
}

} // namespace monet::joint_mapping

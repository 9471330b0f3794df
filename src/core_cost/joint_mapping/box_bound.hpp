// Candidate tile sizes per dimension, and lower bounds of a structure over ranges of tiles.
#pragma once

#include "core_cost/joint_mapping/plan.hpp"

#include <array>
#include <cstdint>
#include <vector>

namespace monet::joint_mapping {

/// Tiles of `size` elements, rising: the minimum for each number of parts, and for each of `grains`
/// (sides of the array) the multiples that are the minimum for some number of parts.
std::vector<std::int64_t> tile_sizes(std::int64_t size, const std::vector<std::int64_t>& grains);

/// Binary tree of ranges of one dimension's tiles: node 0 is the whole range, 2i+1 and 2i+2 are the
/// halves of node i.
class TileRanges {
public:
  struct Node {
    std::uint32_t begin = 0;
    std::uint32_t end = 0;
    std::int64_t min_tile = 0;
    std::int64_t max_tile = 0;
    std::int64_t min_last = 0; ///< elements of the last part
    std::int64_t min_parts = 0;
    std::int64_t max_parts = 0;
    /// By product: minimum contribution of this dimension to its cycles.
    std::array<double, 2> min_cycles{};
    bool single() const { return end - begin == 1; }
  };

  TileRanges() = default;
  TileRanges(const PairProblem& problem, int dim, std::vector<std::int64_t> tiles);

  const Node& operator[](std::uint32_t node) const { return nodes_[node]; }
  std::vector<std::int64_t> falling() const { return {tiles_.rbegin(), tiles_.rend()}; }
  std::int64_t tile(std::uint32_t node) const { return nodes_[node].min_tile; }

private:
  Node make(const PairProblem& problem, int dim, std::uint32_t begin, std::uint32_t end,
            std::uint32_t number);

  std::vector<std::int64_t> tiles_;
  std::vector<Node> nodes_;
};

/// Tiles to choose from, by dimension.
using TileSpace = std::array<TileRanges, kDims>;

/// Nodes of TileSpace, with the data that bounds need.
struct Box {
  std::array<std::uint32_t, kDims> nodes{};
  std::array<double, kDims> min_tile{};
  std::array<double, kDims> max_tile{};
  std::array<double, kDims> min_last{};
  std::array<double, kDims> min_parts{};
  std::array<double, kDims> max_parts{};
  std::array<double, 2> cycles{}; ///< by product, minimum, in units of time
  bool single = false;            ///< a single tile per dimension
  unsigned cuts = 0;              ///< see stands_for_others()

  Box(const PairProblem& problem, const TileSpace& tiles,
      const std::array<std::uint32_t, kDims>& at_nodes);
  Tile tile() const;
};

class StructureBound {
public:
  StructureBound(const PairProblem& problem, const Structure& structure);

  bool fits(const Box& box, double room) const;

  /// Lower bound in units of time: the longer of computing and moving. The first read and last
  /// write are not hidden. With turns, each product's moves hide behind the other's computing.
  double time(const Box& box, int first, double limit) const;
  std::int64_t moved(const std::array<std::int64_t, kDims>& parts) const {
    return shape_.moved(parts);
  }
  /// Upper bounds for one product alone, in units of time: reads of its first step and writes of
  /// its last step.
  double max_first_read(const Box& box) const;
  double max_last_write(const Box& box) const;

private:
  /// Linear form: base + sum of more[d] * (parts[d] - 1).
  struct Linear {
    double base = 0;
    std::array<double, kDims> more{};
    double at(const std::array<double, kDims>& parts) const {
      return base + more[0] * (parts[0] - 1) + more[1] * (parts[1] - 1) + more[2] * (parts[2] - 1);
    }
  };
  /// Traffic of one operand in the first and last steps of its product's turns: elements of its
  /// shared loops times tiles of the others.
  struct Crossing {
    double elements = 0;
    std::array<bool, kDims> tiles{};
    int absent = 0;
    bool repeated = false; ///< with each iteration of the shared loop it lacks
    double moved = 0;      ///< units of time per element
    double partial = 0;
    bool result = false;
    bool common = false; ///< dY fetched only by the first product
  };

  void count_traffic(const PairProblem& problem);
  void add_crossings(const PairProblem& problem, int product);
  double crossing(const Box& box, int product, int first, bool most) const;
  double ends(const Box& box, int first) const;

  const Structure& s_;
  Shape shape_;
  std::array<Linear, 2> own_; ///< without data fetched only by the first product
  Linear dy_;
  Linear all_;
  std::array<std::array<Crossing, 3>, 2> crossings_;
  std::array<std::array<double, 2>, 2> start_{}; ///< per element of each product's factors
  std::array<double, 2> finish_{};               ///< per element of its finished result
  double update_start_ = 0;                      ///< per element of dW, for updates by one product
};

} // namespace monet::joint_mapping

// What a structure takes at least with any tiles of given ranges.
#pragma once

#include "core_cost/joint_mapping/plan.hpp"
#include "core_cost/joint_mapping/tile_sizes.hpp"

#include <array>
#include <cstdint>

namespace monet::joint_mapping {

/// Tiles to choose from, by dimension.
using TileSpace = std::array<TileRanges, kDims>;

/// Nodes of TileSpace, and what bounds need to know of them.
struct Box {
  std::array<std::uint32_t, kDims> nodes{};
  std::array<double, kDims> least_tile{};
  std::array<double, kDims> most_tile{};
  std::array<double, kDims> least_last{};
  std::array<double, kDims> least_parts{};
  std::array<double, kDims> most_parts{};
  std::array<double, 2> cycles{}; ///< by product, at least, in units of time
  bool single = false;            ///< one tile
  unsigned cuts = 0;              ///< see stands_for_others()

  Box(const PairProblem& problem, const TileSpace& tiles,
      const std::array<std::uint32_t, kDims>& at_nodes);
  Tile tile() const;
};

class StructureBound {
public:
  StructureBound(const PairProblem& problem, const Structure& structure);

  bool fits(const Box& box, double room) const;

  /// In units of time: the longer of computing and moving, where the first reads and the last
  /// write hide behind nothing; taking turns, each product's moves hide behind the other one's
  /// computing.
  double time(const Box& box, int first, double limit) const;
  std::int64_t moved(const std::array<std::int64_t, kDims>& parts) const {
    return shape_.moved(parts);
  }

private:
  /// base + sum of more[d] * (parts[d] - 1).
  struct Linear {
    double base = 0;
    std::array<double, kDims> more{};
    double at(const std::array<double, kDims>& parts) const {
      return base + more[0] * (parts[0] - 1) + more[1] * (parts[1] - 1) + more[2] * (parts[2] - 1);
    }
  };
  /// What one operand moves in the first and last steps of its product's turns: elements are those
  /// of its shared loops times tiles of the others.
  struct Crossing {
    double elements = 0;
    std::array<bool, kDims> tiles{};
    int absent = 0;
    bool repeated = false; ///< with each iteration of the shared loop that it does not depend on
    double moved = 0;      ///< units of time per element
    double partial = 0;
    bool result = false;
    bool common = false; ///< dY that only the first product fetches
  };

  void count_traffic(const PairProblem& problem);
  void add_crossings(const PairProblem& problem, int product);
  double crossing(const Box& box, int product, int first, bool most) const;
  double ends(const Box& box, int first) const;

  const Structure& s_;
  Shape shape_;
  std::array<Linear, 2> own_; ///< without what only the first product fetches
  Linear dy_;
  Linear all_;
  std::array<std::array<Crossing, 3>, 2> crossings_;
  std::array<std::array<double, 2>, 2> start_{}; ///< per element of the factors of each product
  std::array<double, 2> finish_{};               ///< and of its finished result
};

} // namespace monet::joint_mapping

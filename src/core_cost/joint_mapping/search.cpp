#include "core_cost/joint_mapping/search.hpp"

#include "monet/base/units.hpp"

#include <algorithm>
#include <queue>

namespace monet::joint_mapping {
namespace {

/// Doubles of bounds may be too large by rounding.
constexpr double kRounding = 1 - 1e-12;

/// Ranges of tiles by dimension, of one structure.
struct Box {
  double bound = 0;
  std::uint32_t structure = 0;
  std::array<std::uint32_t, kDims> nodes{};
  std::uint64_t number = 0; ///< of equal bounds the newest first: it is the smallest

  friend bool operator<(const Box& a, const Box& b) {
    if (a.bound != b.bound)
      return a.bound > b.bound;
    return a.number < b.number;
  }
};

/// Where a dimension has one part, its loop may stand anywhere: structures that differ in that
/// alone take and move the same. Of them, those hold least in which the loop is innermost and not
/// shared (where it is the only shared one it stays) and what does not depend on it counts as moved
/// once. True for those, `single` telling which dimensions have one part, `several` which have
/// more.
bool stands_for_others(const Structure& s, const std::array<bool, kDims>& single,
                       const std::array<bool, kDims>& several) {
  const int shared = s.form == Form::shared ? s.shared : 0;
  for (const int product : {kDx, kDw}) {
    if (!s.uses(product))
      continue;
    const std::array<int, kDims>& order = s.order[at(product)];
    for (int q = 0; q < kDims; ++q) {
      const int dim = order[at(q)];
      if (!single[at(dim)])
        continue;
      if (q < shared) {
        if (shared > 1)
          return false;
        for (int other = 0; other < dim; ++other) {
          if (single[at(other)])
            return false;
        }
        for (int place = 0; place < 3; ++place) {
          const BackwardOperand operand = operand_of(product, place);
          if (absent_dim(operand) == dim && operand != BackwardOperand::dy &&
              s.once[at(product)][at(place)])
            return false; // moved in every step, which is once, it need not stay
        }
        continue;
      }
      // Behind it come only others with one part, by their numbers.
      for (int r = q + 1; r < kDims; ++r) {
        const int behind = order[at(r)];
        if (several[at(behind)] || (single[at(behind)] && behind < dim))
          return false;
      }
      for (int place = 0; place < 3; ++place) {
        const BackwardOperand operand = operand_of(product, place);
        if (absent_dim(operand) == dim && !s.once[at(product)][at(place)] && !s.sliced)
          return false;
      }
    }
  }
  return true;
}

class Search {
public:
  Search(const PairProblem& problem, const std::vector<Structure>& structures,
         const TileSpace& tiles, double walked, bool complete)
      : problem_(problem), structures_(structures), tiles_(tiles), walked_(walked),
        complete_(complete) {
    shapes_.reserve(structures.size());
    for (const Structure& s : structures)
      shapes_.emplace_back(problem, s);
  }

  std::optional<Choice> run(std::optional<Wide> known) {
    if (known)
      limit_ = static_cast<double>(*known);
    best_time_ = known;
    for (std::uint32_t s = 0; s < structures_.size(); ++s)
      push(s, {0, 0, 0});
    while (!queue_.empty()) {
      const Box box = queue_.top();
      queue_.pop();
      if (best_time_ && box.bound >= limit_)
        break;
      split(box);
    }
    return std::move(best_);
  }

private:
  void push(std::uint32_t structure, const std::array<std::uint32_t, kDims>& nodes) {
    Tile tile{};
    std::array<std::int64_t, kDims> parts{};
    std::array<bool, kDims> whole{};
    std::array<bool, kDims> cut{};
    bool single = true;
    double steps = 1;
    for (std::size_t d = 0; d < kDims; ++d) {
      const TileRanges::Node& node = tiles_[d][nodes[d]];
      tile[d] = node.least_tile;
      parts[d] = node.least_parts;
      single = single && node.single();
      whole[d] = node.least_tile == problem_.size[d];
      cut[d] = node.least_parts > 1;
      steps *= static_cast<double>(node.least_parts);
    }
    const Structure& s = structures_[structure];
    if (s.form == Form::lockstep && steps > walked_)
      return;
    if (complete_ && !stands_for_others(s, whole, cut))
      return;
    if (shapes_[structure].held(tile) > problem_.room)
      return;
    const double bound = this->bound(structure, nodes, tile, parts);
    if (best_time_ && bound >= limit_)
      return;
    if (single)
      evaluate(structure, tile);
    else
      queue_.push({bound, structure, nodes, number_++});
  }

  /// The longer of computing and moving, where the first reads hide behind nothing. Taking turns,
  /// each product's moves hide behind the other one's computing.
  double bound(std::uint32_t structure, const std::array<std::uint32_t, kDims>& nodes,
               const Tile& tile, const std::array<std::int64_t, kDims>& parts) const {
    const Structure& s = structures_[structure];
    const Shape& shape = shapes_[structure];
    const auto move_units = static_cast<double>(problem_.move_units);
    std::array<double, 2> cycles{};
    for (const int product : {kDx, kDw}) {
      if (s.uses(product)) {
        double own = static_cast<double>(problem_.cycle_units);
        for (std::size_t d = 0; d < kDims; ++d)
          own *= tiles_[d][nodes[d]].least_cycles[at(product)];
        cycles[at(product)] = own;
      }
    }
    const double start = first_read(s, tile) * move_units;
    double most = std::max(cycles[kDx] + cycles[kDw] + start,
                           static_cast<double>(shape.moved(parts)) * move_units);
    const auto moving = [&](int product) {
      return static_cast<double>(shape.moved_by(product, parts)) * move_units;
    };
    if (s.form == Form::lockstep || s.shared == kDims)
      most =
          std::max(most, std::max(cycles[kDx], moving(kDw)) + std::max(cycles[kDw], moving(kDx)));
    else if (s.form == Form::shared) {
      double sum = 0;
      for (const int product : {kDx, kDw})
        sum += std::max(cycles[at(product)],
                        moving(product) + (crossing(s, 1 - product, nodes, false) -
                                           crossing(s, product, nodes, true)) *
                                              move_units);
      most = std::max(most, sum);
    }
    return most * kRounding;
  }

  /// 1/256 bit that one product moves while the other one computes: what the first step of each of
  /// its turns reads and the last one writes. At most that in the range of tiles; or at least,
  /// without writes.
  double crossing(const Structure& s, int product, const std::array<std::uint32_t, kDims>& nodes,
                  bool most) const {
    double bits = 0;
    for (int place = 0; place < 3; ++place) {
      const BackwardOperand operand = operand_of(product, place);
      const int absent = absent_dim(operand);
      const bool dy = operand == BackwardOperand::dy && s.dy != DyUse::apart;
      if (dy && product != s.first())
        continue;
      double elements = 1;
      for (int d = 0; d < kDims; ++d) {
        const TileRanges::Node& node = tiles_[at(d)][nodes[at(d)]];
        if (d != absent)
          elements *= static_cast<double>(position(s, product, d) < s.shared ? problem_.size[at(d)]
                                          : most                             ? node.most_tile
                                                                             : node.least_tile);
      }
      const bool repeated = position(s, product, absent) < s.shared &&
                            (dy ? s.dy == DyUse::block : !s.once[at(product)][at(place)]);
      const TileRanges::Node& turns = tiles_[at(absent)][nodes[at(absent)]];
      const auto times =
          static_cast<double>(repeated ? most ? turns.most_parts : turns.least_parts : 1);
      const auto moved = static_cast<double>(problem_.moved[at(operand)]);
      const auto partial = static_cast<double>(problem_.moved_partial[at(operand)]);
      if (place < kResult)
        bits += elements * times * moved;
      else {
        bits += elements * (times - 1) * partial * (most ? 2 : 1);
        if (most)
          bits +=
              elements * (problem_.update && product == kDw
                              ? static_cast<double>(problem_.update_read + problem_.update_write)
                              : moved);
      }
    }
    return bits;
  }

  /// 1/256 bit that the first step reads, with tiles of at least these sizes.
  double first_read(const Structure& s, const Tile& tile) const {
    const int product = s.first();
    double sum = 0;
    for (int place = 0; place < kResult; ++place) {
      const BackwardOperand operand = operand_of(product, place);
      if (operand == BackwardOperand::dy && s.dy == DyUse::present)
        continue;
      double elements = 1;
      for (int d = 0; d < kDims; ++d) {
        if (d != absent_dim(operand))
          elements *= static_cast<double>(tile[static_cast<std::size_t>(d)]);
      }
      sum += elements * static_cast<double>(problem_.moved[at(operand)]);
    }
    return sum;
  }

  void evaluate(std::uint32_t structure, const Tile& tile) {
    const Plan plan(problem_, structures_[structure], tile);
    const Wide time = plan.time();
    const std::int64_t moved = shapes_[structure].moved(plan.parts());
    const bool equal = best_ && time == best_->time && moved < best_->moved;
    if (best_time_ && time >= *best_time_ && !equal)
      return;
    best_time_ = time;
    limit_ = static_cast<double>(time);
    best_ = Choice{structures_[structure], tile, time, moved};
  }

  void split(const Box& box) {
    std::size_t widest = 0;
    std::uint32_t width = 0;
    for (std::size_t d = 0; d < kDims; ++d) {
      const TileRanges::Node& node = tiles_[d][box.nodes[d]];
      if (node.end - node.begin > width) {
        width = node.end - node.begin;
        widest = d;
      }
    }
    // Large tiles first: they move less.
    for (const std::uint32_t half : {2U, 1U}) {
      std::array<std::uint32_t, kDims> nodes = box.nodes;
      nodes[widest] = 2 * nodes[widest] + half;
      push(box.structure, nodes);
    }
  }

  const PairProblem& problem_;
  const std::vector<Structure>& structures_;
  const TileSpace& tiles_;
  double walked_;
  bool complete_;
  std::vector<Shape> shapes_;
  std::priority_queue<Box> queue_;
  std::uint64_t number_ = 0;
  std::optional<Wide> best_time_;
  double limit_ = 0;
  std::optional<Choice> best_;
};

} // namespace

Tile array_tile(const PairProblem& problem) {
  return {std::min(problem.size[0], problem.rows), std::min(problem.size[1], problem.columns),
          std::min(problem.size[2], problem.columns)};
}

TileSpace array_tiles(const PairProblem& problem) {
  const Tile tile = array_tile(problem);
  TileSpace space;
  for (int d = 0; d < kDims; ++d)
    space[static_cast<std::size_t>(d)] =
        TileRanges(problem, d, {tile[static_cast<std::size_t>(d)]});
  return space;
}

TileSpace searched_tiles(const PairProblem& problem, bool divisors) {
  TileSpace space;
  for (int d = 0; d < kDims; ++d) {
    const std::int64_t size = problem.size[static_cast<std::size_t>(d)];
    std::vector<std::int64_t> grains;
    if (problem.timing != TileTiming::none)
      grains = {problem.rows, problem.columns};
    std::vector<std::int64_t> tiles = tile_sizes(size, grains);
    if (problem.timing == TileTiming::core) {
      const std::int64_t side = array_tile(problem)[static_cast<std::size_t>(d)];
      tiles.clear();
      std::int64_t tile = size;
      for (int i = 0; i < 5; ++i) {
        tiles.push_back(tile);
        tile =
            std::min(size, ceil_div(ceil_div(size, side), std::int64_t{1} << (2 * (i + 1))) * side);
      }
      std::sort(tiles.begin(), tiles.end());
      tiles.erase(std::unique(tiles.begin(), tiles.end()), tiles.end());
    }
    if (divisors)
      std::erase_if(tiles, [&](std::int64_t tile) { return size % tile != 0; });
    space[at(d)] = TileRanges(problem, d, std::move(tiles));
  }
  return space;
}

std::optional<Choice> best_choice(const PairProblem& problem,
                                  const std::vector<Structure>& structures, const TileSpace& tiles,
                                  std::optional<Wide> known, double walked, bool complete) {
  return Search(problem, structures, tiles, walked, complete).run(known);
}

} // namespace monet::joint_mapping

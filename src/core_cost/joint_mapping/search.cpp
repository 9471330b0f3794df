// Branch and bound over structures and ranges of tiles of the joint mapping; techniques.cpp chooses
// the spaces.
#include "core_cost/joint_mapping/search.hpp"

#include "core_cost/joint_mapping/box_bound.hpp"

#include "monet/base/stop.hpp"
#include "monet/base/units.hpp"

#include <algorithm>
#include <limits>
#include <queue>

namespace monet::joint_mapping {
namespace {

/// Open node: ranges of tiles by dimension, for one structure.
struct OpenBox {
  double bound = 0;
  std::uint32_t structure = 0;
  std::array<std::uint32_t, kDims> nodes{};
  std::uint32_t number = 0; ///< ties in bound: the newest first, as the smallest

  friend bool operator<(const OpenBox& a, const OpenBox& b) {
    if (a.bound != b.bound)
      return a.bound > b.bound;
    return a.number < b.number;
  }
};

class Search {
public:
  Search(const PairProblem& problem, const std::vector<Structure>& structures,
         const TileSpace& tiles, const SearchSpace& space)
      : problem_(problem), structures_(structures), tiles_(tiles), space_(space),
        room_(static_cast<double>(problem.room)) {
    bounds_.reserve(structures.size());
    for (const Structure& s : structures)
      bounds_.emplace_back(problem, s);
  }

  std::optional<Choice> run(std::optional<Wide> known) {
    best_time_ = known;
    if (known)
      limit_ = static_cast<double>(*known);
    const Box all(problem_, tiles_, {0, 0, 0});
    for (std::uint32_t s = 0; s < structures_.size(); ++s)
      push(s, all);
    std::uint32_t turns = 0;
    while (!queue_.empty() && queue_.top().bound < limit_) {
      const OpenBox box = queue_.top();
      queue_.pop();
      split(box);
      if (++turns % 1024 == 0)
        check_stop();
    }
    return std::move(best_);
  }

private:
  void push(std::uint32_t structure, const Box& box) {
    const Structure& s = structures_[structure];
    const StructureBound& bound = bounds_[structure];
    if (space_.complete && (s.stands >> box.cuts & 1U) == 0)
      return;
    if (s.form == Form::lockstep &&
        box.min_parts[0] * box.min_parts[1] * box.min_parts[2] > space_.walked)
      return;
    if (!bound.fits(box, room_))
      return;
    double least = std::numeric_limits<double>::infinity();
    for (const bool turned : {false, true}) {
      if (turned && !space_.both_turns)
        break;
      const int first = turned ? 1 - s.first() : s.first();
      const double time = bound.time(box, first, limit_);
      if (time >= limit_)
        continue;
      least = std::min(least, time);
      if (box.single)
        evaluate(structure, box.tile(), turned);
    }
    if (!box.single && least < limit_)
      queue_.push({least, structure, box.nodes, number_++});
  }

  void evaluate(std::uint32_t structure, const Tile& tile, bool turned) {
    Structure s = structures_[structure];
    s.dw_first = s.dw_first != turned;
    const Plan plan(problem_, s, tile);
    const Wide time = plan.time();
    const std::int64_t moved = bounds_[structure].moved(plan.parts());
    const bool equal = best_ && time == best_->time && moved < best_->moved;
    if (best_time_ && time >= *best_time_ && !equal)
      return;
    best_time_ = time;
    limit_ = static_cast<double>(time);
    best_ = Choice{s, tile, time, moved};
  }

  void split(const OpenBox& box) {
    std::size_t widest = 0;
    std::uint32_t width = 0;
    for (std::size_t d = 0; d < kDims; ++d) {
      const TileRanges::Node& node = tiles_[d][box.nodes[d]];
      if (node.end - node.begin > width) {
        width = node.end - node.begin;
        widest = d;
      }
    }
    // Large tiles first, since they move less.
    for (const std::uint32_t half : {2U, 1U}) {
      std::array<std::uint32_t, kDims> nodes = box.nodes;
      nodes[widest] = 2 * nodes[widest] + half;
      push(box.structure, Box(problem_, tiles_, nodes));
    }
  }

  const PairProblem& problem_;
  const std::vector<Structure>& structures_;
  const TileSpace& tiles_;
  SearchSpace space_;
  double room_;
  std::vector<StructureBound> bounds_;
  std::priority_queue<OpenBox> queue_;
  std::uint32_t number_ = 0;
  std::optional<Wide> best_time_;
  double limit_ = std::numeric_limits<double>::infinity();
  std::optional<Choice> best_;
};

Tile array_tile(const PairProblem& problem) {
  return {std::min(problem.size[0], problem.rows), std::min(problem.size[1], problem.columns),
          std::min(problem.size[2], problem.columns)};
}

} // namespace

TileSpace array_tiles(const PairProblem& problem) {
  const Tile tile = array_tile(problem);
  TileSpace space;
  for (int d = 0; d < kDims; ++d)
    space[at(d)] = TileRanges(problem, d, {tile[at(d)]});
  return space;
}

TileSpace searched_tiles(const PairProblem& problem, bool divisors) {
  TileSpace space;
  for (int d = 0; d < kDims; ++d) {
    const std::int64_t size = problem.size[at(d)];
    std::vector<std::int64_t> grains;
    if (problem.timing != TileTiming::none)
      grains = {problem.rows, problem.columns};
    std::vector<std::int64_t> tiles = tile_sizes(size, grains);
    if (problem.timing == TileTiming::core) {
      const std::int64_t side = array_tile(problem)[at(d)];
      tiles = {size, side};
      for (int i = 1; i < 5; ++i)
        tiles.push_back(
            std::min(size, ceil_div(ceil_div(size, side), std::int64_t{1} << (2 * i)) * side));
      std::ranges::sort(tiles);
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
                                  std::optional<Wide> known, const SearchSpace& space) {
  return Search(problem, structures, tiles, space).run(known);
}

} // namespace monet::joint_mapping

// Caches of tiles: what any order of tile products moves with LRU and with Belady's replacement.
// The three tiles of a product are there at once; results leave when they must, as partial sums
// that come back, or complete.
#pragma once

#include "core_cost/joint_mapping/simulator.hpp"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <map>
#include <vector>

namespace monet::test {

enum class Replacement { lru, belady };

struct CachedRun {
  std::int64_t fetches = 0; ///< times that a tile came to be on the chip
  std::int64_t moved = 0;   ///< 1/256 bit
};

/// Tiles by operand (dX of one product, dW of the other; dY is one for both) and index.
using TileName = std::pair<BackwardOperand, Index>;

inline std::array<TileName, 3> tiles_of(const TileProduct& op) {
  std::array<TileName, 3> out;
  for (int place = 0; place < 3; ++place) {
    const BackwardOperand o = joint_mapping::operand_of(op.product, place);
    Index index = op.index;
    index[joint_mapping::at(joint_mapping::absent_dim(o))] = 0;
    out[static_cast<std::size_t>(place)] = {o, index};
  }
  return out;
}

/// All tiles count as equally large.
class TileCache {
public:
  TileCache(const PairProblem& problem, const Tile& tile, const std::vector<TileProduct>& order,
            std::size_t capacity, Replacement replacement)
      : p_(problem), tile_(tile), order_(order), capacity_(capacity), replacement_(replacement) {
    for (std::size_t i = 0; i < order.size(); ++i) {
      for (const TileName& name : tiles_of(order[i]))
        uses_[name].push_back(i);
    }
  }

  CachedRun run() {
    for (std::size_t i = 0; i < order_.size(); ++i) {
      const std::array<TileName, 3> now = tiles_of(order_[i]);
      for (const TileName& name : now) {
        if (there_.count(name) == 0) {
          make_room(now, i);
          fetch(name, order_[i].index);
        }
        there_[name] = i;
      }
      ++terms_[now[2]];
    }
    while (!there_.empty())
      leave(there_.begin()->first);
    return run_;
  }

private:
  bool is_result(const TileName& name) const {
    return name.first == BackwardOperand::dx || name.first == BackwardOperand::dw;
  }
  std::int64_t elements(const TileName& name) const {
    std::int64_t product = 1;
    for (int d = 0; d < 3; ++d) {
      const std::size_t i = joint_mapping::at(d);
      if (d != joint_mapping::absent_dim(name.first))
        product *= std::min(tile_[i], p_.size[i] - name.second[i] * tile_[i]);
    }
    return product;
  }

  void fetch(const TileName& name, const Index&) {
    ++run_.fetches;
    const std::size_t o = joint_mapping::at(name.first);
    if (!is_result(name))
      run_.moved += elements(name) * p_.moved[o];
    else if (terms_[name] > 0)
      run_.moved += elements(name) * p_.moved_partial[o];
  }

  void leave(const TileName& name) {
    const std::size_t o = joint_mapping::at(name.first);
    if (is_result(name)) {
      const bool complete = terms_[name] == static_cast<std::int64_t>(uses_[name].size());
      run_.moved += elements(name) * (complete ? p_.moved[o] : p_.moved_partial[o]);
    }
    there_.erase(name);
  }

  void make_room(const std::array<TileName, 3>& now, std::size_t step) {
    while (there_.size() >= capacity_) {
      const TileName* worst = nullptr;
      std::size_t rank = 0;
      for (const auto& [name, last] : there_) {
        if (std::find(now.begin(), now.end(), name) != now.end())
          continue;
        const std::size_t age =
            replacement_ == Replacement::lru ? step - last : next_use(name, step);
        if (!worst || age > rank) {
          worst = &name;
          rank = age;
        }
      }
      leave(TileName(*worst));
    }
  }

  std::size_t next_use(const TileName& name, std::size_t step) {
    const std::vector<std::size_t>& uses = uses_[name];
    const auto next = std::upper_bound(uses.begin(), uses.end(), step);
    return next == uses.end() ? std::numeric_limits<std::size_t>::max() : *next;
  }

  const PairProblem& p_;
  Tile tile_;
  const std::vector<TileProduct>& order_;
  std::size_t capacity_;
  Replacement replacement_;
  std::map<TileName, std::vector<std::size_t>> uses_;
  std::map<TileName, std::size_t> there_; ///< and the step of the last use
  std::map<TileName, std::int64_t> terms_;
  CachedRun run_;
};

} // namespace monet::test

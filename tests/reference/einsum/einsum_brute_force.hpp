// Every mapping of a small cascade of Einsums, one by one: no rule that spares work, and memory
// counted tile by tile. For operands whose axes are single ranks.
#pragma once

#include "monet/reference/einsum_mapper.hpp"

#include <algorithm>
#include <cstdint>
#include <map>
#include <numeric>
#include <set>
#include <vector>

namespace monet::brute {

struct Loop {
  std::uint32_t rank;
  std::int64_t tile;
  std::int64_t trips;
};

struct Mapping {
  std::int64_t dram = 0;
  std::vector<int> level;          ///< per operand: shared loops above, -1 = from DRAM
  std::vector<int> depth;          ///< per operand: loops of the path above its tile
  std::vector<std::int64_t> tiles; ///< bits per operand
  std::vector<Loop> path;
};

inline std::vector<std::vector<std::uint32_t>> users(const EinsumCascade& c) {
  std::vector<std::vector<std::uint32_t>> users(c.tensors.size());
  for (std::uint32_t e = 0; e < c.einsums.size(); ++e) {
    for (const EinsumOperand& operand : c.einsums[e].operands)
      users[operand.tensor].push_back(e);
  }
  return users;
}

inline bool made(const EinsumCascade& c, std::uint32_t tensor) {
  for (const Einsum& einsum : c.einsums) {
    for (const EinsumOperand& operand : einsum.operands) {
      if (operand.tensor == tensor && operand.written)
        return true;
    }
  }
  return false;
}

/// Axis of the operand that the rank indexes, or -1.
inline int axis_of(const EinsumOperand& operand, std::uint32_t rank) {
  for (std::size_t a = 0; a < operand.axes.size(); ++a) {
    if (operand.axes[a].terms.front().dim == rank)
      return static_cast<int>(a);
  }
  return -1;
}

class OneEinsum {
public:
  OneEinsum(const EinsumCascade& c, std::uint32_t e, bool resident)
      : c_(c), einsum_(c.einsums[e]), ranks_(einsum_.bounds.size()) {
    const auto uses = users(c);
    for (const EinsumOperand& operand : einsum_.operands) {
      const EinsumTensor& tensor = c.tensors[operand.tensor];
      may_share_.push_back(uses[operand.tensor].size() > 1 && (resident || !tensor.external));
      pays_.push_back(tensor.external && uses[operand.tensor].front() == e);
    }
    std::vector<std::uint32_t> order(einsum_.operands.size());
    std::iota(order.begin(), order.end(), 0U);
    do {
      for (std::uint32_t shared = 0; shared < (1U << order.size()); ++shared) {
        bool possible = true;
        for (std::size_t o = 0; o < order.size(); ++o)
          possible = possible && ((shared >> o & 1U) == 0 || may_share_[o]);
        if (possible) {
          Mapping mapping;
          mapping.level.assign(order.size(), -1);
          mapping.depth.assign(order.size(), 99);
          mapping.tiles.assign(order.size(), 0);
          std::vector<int> fused(ranks_, 0);
          place(order, 0, shared, einsum_.bounds, mapping, fused);
        }
      }
    } while (std::next_permutation(order.begin(), order.end()));
  }
  std::vector<Mapping> mappings() const {
    std::vector<Mapping> all;
    for (const auto& [key, group] : groups_)
      all.insert(all.end(), group.begin(), group.end());
    return all;
  }

private:
  void place(const std::vector<std::uint32_t>& order, std::size_t position, std::uint32_t shared,
             const std::vector<std::int64_t>& tiles, const Mapping& so_far,
             const std::vector<int>& fused) {
    if (position == order.size()) {
      keep(so_far);
      return;
    }
    std::uint32_t open = 0; // shared tensors at or below this place
    for (std::size_t p = position; p < order.size(); ++p)
      open |= shared & (1U << order[p]);
    std::vector<std::int64_t> inner(ranks_, 1);
    for (;;) {
      try_tiles(order, position, shared, open, tiles, inner, so_far, fused);
      std::size_t r = 0;
      while (r < ranks_ && ++inner[r] > tiles[r])
        inner[r++] = 1;
      if (r == ranks_)
        return;
    }
  }

  void try_tiles(const std::vector<std::uint32_t>& order, std::size_t position,
                 std::uint32_t shared, std::uint32_t open, const std::vector<std::int64_t>& outer,
                 const std::vector<std::int64_t>& inner, const Mapping& so_far,
                 std::vector<int> fused) {
    std::vector<Loop> loops;
    for (std::uint32_t r = 0; r < ranks_; ++r) {
      if (outer[r] % inner[r] != 0)
        return;
      if (outer[r] == inner[r])
        continue;
      loops.push_back({r, inner[r], outer[r] / inner[r]});
      for (std::size_t o = 0; o < order.size(); ++o) {
        if ((open >> o & 1U) != 0 && axis_of(einsum_.operands[o], r) < 0)
          return; // would be made again
      }
      if (open != 0 && ++fused[r] > 1)
        return;
    }
    const std::uint32_t o = order[position];
    do {
      Mapping mapping = so_far;
      if (open != 0)
        mapping.path.insert(mapping.path.end(), loops.begin(), loops.end());
      hold(mapping, o, (shared >> o & 1U) != 0, open != 0, inner);
      place(order, position + 1, shared, inner, mapping, fused);
    } while (open != 0 && std::next_permutation(loops.begin(), loops.end(),
                                                [](auto& a, auto& b) { return a.rank < b.rank; }));
  }

  void hold(Mapping& mapping, std::uint32_t o, bool shared, bool on_path,
            const std::vector<std::int64_t>& tiles) const {
    const EinsumOperand& operand = einsum_.operands[o];
    std::int64_t size = c_.tensors[operand.tensor].bits;
    std::int64_t whole = size;
    std::int64_t repeats = 1;
    for (std::uint32_t r = 0; r < ranks_; ++r) {
      const bool indexes = axis_of(operand, r) >= 0;
      size *= indexes ? tiles[r] : 1;
      whole *= indexes ? einsum_.bounds[r] : 1;
      repeats *= indexes ? 1 : einsum_.bounds[r] / tiles[r];
    }
    mapping.tiles[o] = size;
    mapping.depth[o] = on_path ? static_cast<int>(mapping.path.size()) : 99;
    if (shared) {
      mapping.level[o] = static_cast<int>(mapping.path.size());
      mapping.dram += pays_[o] ? whole : 0;
    } else {
      mapping.dram += operand.written ? whole * (2 * repeats - 1) : whole * repeats;
    }
  }

  /// Mappings that neighbours see alike: those that none beats in traffic and in every tile.
  void keep(const Mapping& mapping) {
    std::vector<std::int64_t> key(mapping.level.begin(), mapping.level.end());
    key.insert(key.end(), mapping.depth.begin(), mapping.depth.end());
    for (const Loop& loop : mapping.path) {
      key.push_back(loop.rank);
      key.push_back(loop.tile);
    }
    std::vector<Mapping>& group = groups_[key];
    const auto beats = [](const Mapping& a, const Mapping& b) {
      return a.dram <= b.dram &&
             std::equal(a.tiles.begin(), a.tiles.end(), b.tiles.begin(), std::less_equal<>());
    };
    for (const Mapping& other : group) {
      if (beats(other, mapping))
        return;
    }
    std::erase_if(group, [&](const Mapping& other) { return beats(mapping, other); });
    group.push_back(mapping);
  }

  const EinsumCascade& c_;
  const Einsum& einsum_;
  std::size_t ranks_;
  std::vector<bool> may_share_;
  std::vector<bool> pays_;
  std::map<std::vector<std::int64_t>, std::vector<Mapping>> groups_;
};

/// All mappings of a cascade: the front of peak bits against DRAM bits.
class AllMappings {
public:
  AllMappings(const EinsumCascade& c, bool resident, bool unordered)
      : c_(c), unordered_(unordered), users_(users(c)) {
    for (std::uint32_t e = 0; e < c.einsums.size(); ++e)
      options_.push_back(OneEinsum(c, e, resident).mappings());
    chosen_.resize(c.einsums.size());
    choose(0, 0);
  }
  std::vector<std::pair<std::int64_t, std::int64_t>> front() const {
    std::vector<std::pair<std::int64_t, std::int64_t>> front;
    for (const auto& [peak, dram] : best_) {
      if (front.empty() || dram < front.back().second)
        front.emplace_back(peak, dram);
    }
    return front;
  }
  std::int64_t tried = 0;

private:
  const EinsumOperand* operand_of(std::uint32_t e, std::uint32_t tensor, std::size_t& o) const {
    for (o = 0; o < c_.einsums[e].operands.size(); ++o) {
      if (c_.einsums[e].operands[o].tensor == tensor)
        return &c_.einsums[e].operands[o];
    }
    return nullptr;
  }

  void choose(std::uint32_t e, std::int64_t dram) {
    if (e == options_.size()) {
      evaluate(dram);
      return;
    }
    for (const Mapping& mapping : options_[e]) {
      chosen_[e] = &mapping;
      if (agrees(e))
        choose(e + 1, dram + mapping.dram);
    }
  }

  /// With those that use the same tensors: same place, same loops above it.
  bool agrees(std::uint32_t e) const {
    for (std::size_t o = 0; o < c_.einsums[e].operands.size(); ++o) {
      const EinsumOperand& operand = c_.einsums[e].operands[o];
      const std::uint32_t first = users_[operand.tensor].front();
      if (first == e)
        continue;
      std::size_t other = 0;
      const EinsumOperand* const there = operand_of(first, operand.tensor, other);
      const int level = chosen_[e]->level[o];
      if (level != chosen_[first]->level[other])
        return false;
      for (int l = 0; l < level; ++l) {
        if (!same_loop(*there, chosen_[first], operand, chosen_[e], static_cast<std::size_t>(l)))
          return false;
      }
    }
    return true;
  }
  static bool same_loop(const EinsumOperand& a, const Mapping* ma, const EinsumOperand& b,
                        const Mapping* mb, std::size_t l) {
    const int axis = axis_of(a, ma->path[l].rank);
    return axis >= 0 && axis == axis_of(b, mb->path[l].rank) &&
           ma->path[l].tile == mb->path[l].tile;
  }

  int level_of(std::uint32_t tensor) const {
    std::size_t o = 0;
    const std::uint32_t e = users_[tensor].front();
    operand_of(e, tensor, o);
    return chosen_[e]->level[o];
  }
  bool alive(std::uint32_t tensor, std::uint32_t boundary) const { // between boundary, boundary + 1
    return users_[tensor].size() > 1 && users_[tensor].front() <= boundary &&
           users_[tensor].back() > boundary;
  }

  void evaluate(std::int64_t dram) {
    ++tried;
    const auto count = static_cast<std::uint32_t>(options_.size());
    std::vector<int> shared(count, 0); // loops between e and e + 1
    for (std::uint32_t b = 0; b + 1 < count; ++b) {
      for (std::uint32_t t = 0; t < c_.tensors.size(); ++t) {
        if (alive(t, b))
          shared[b] = std::max(shared[b], level_of(t));
      }
    }
    if (!is_tree(shared) || !(unordered_ || in_order(shared)))
      return;
    std::int64_t peak = 0;
    for (std::uint32_t e = 0; e < count; ++e)
      peak = std::max(peak, held(e, shared));
    const auto at = best_.try_emplace(peak, dram).first;
    at->second = std::min(at->second, dram);
  }

  bool is_tree(const std::vector<int>& shared) const {
    for (std::uint32_t e = 1; e < options_.size(); ++e) {
      const auto loops = static_cast<std::size_t>(shared[e - 1]);
      if (loops > chosen_[e]->path.size() || loops > chosen_[e - 1]->path.size())
        return false;
      for (std::size_t l = 0; l < loops; ++l) {
        if (chosen_[e]->path[l].trips != chosen_[e - 1]->path[l].trips)
          return false;
      }
      int others = 0; // what goes past e may not need more loops than what e hands on
      int own = 0;
      for (std::uint32_t t = 0; t < c_.tensors.size(); ++t) {
        if (!alive(t, e))
          continue;
        std::size_t o = 0;
        int& most = operand_of(e, t, o) == nullptr ? others : own;
        most = std::max(most, level_of(t));
      }
      if (others > own)
        return false;
    }
    return true;
  }

  static int least(const std::vector<int>& shared, std::uint32_t from, std::uint32_t to) {
    return from == to ? 99 : *std::min_element(shared.begin() + from, shared.begin() + to);
  }

  /// What is read under a shared loop has been made there.
  bool in_order(const std::vector<int>& shared) const {
    for (std::uint32_t t = 0; t < c_.tensors.size(); ++t) {
      if (users_[t].size() < 2 || !made(c_, t))
        continue;
      const std::uint32_t p = users_[t].front();
      std::size_t o = 0;
      const EinsumOperand* const there = operand_of(p, t, o);
      for (std::size_t u = 1; u < users_[t].size(); ++u) {
        const std::uint32_t c = users_[t][u];
        const EinsumOperand* const here = operand_of(c, t, o);
        for (int l = std::max(0, level_of(t)); l < least(shared, p, c); ++l) {
          if (!same_loop(*there, chosen_[p], *here, chosen_[c], static_cast<std::size_t>(l)))
            return false;
        }
      }
    }
    return true;
  }

  /// Bits in the buffer while Einsum e runs.
  std::int64_t held(std::uint32_t e, const std::vector<int>& shared) const {
    std::int64_t bits = 0;
    std::set<std::uint32_t> counted;
    for (std::uint32_t f = 0; f < options_.size(); ++f) {
      const int common = least(shared, std::min(e, f), std::max(e, f));
      for (std::size_t o = 0; o < c_.einsums[f].operands.size(); ++o) {
        const std::uint32_t t = c_.einsums[f].operands[o].tensor;
        if (chosen_[f]->level[o] < 0) {
          bits += chosen_[f]->depth[o] < common || e == f ? chosen_[f]->tiles[o] : 0;
          continue;
        }
        const bool within = users_[t].front() <= e && e <= users_[t].back();
        if ((within || chosen_[f]->level[o] < common) && counted.insert(t).second)
          bits += chosen_[f]->tiles[o];
      }
    }
    return bits;
  }

  const EinsumCascade& c_;
  bool unordered_;
  std::vector<std::vector<std::uint32_t>> users_;
  std::vector<std::vector<Mapping>> options_;
  std::vector<const Mapping*> chosen_;
  std::map<std::int64_t, std::int64_t> best_; ///< DRAM bits by peak
};

} // namespace monet::brute

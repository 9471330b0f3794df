// A simulator of steps and tiles: the witness of the closed forms of joint_mapping. It runs every
// product of tiles, in the order that a structure says, and keeps sets of tiles; nothing in it
// counts in formulas.
#pragma once

#include "core_cost/joint_mapping/plan.hpp"

#include "monet/base/units.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <set>
#include <tuple>
#include <vector>

namespace monet::test {

using joint_mapping::DyUse;
using joint_mapping::Form;
using joint_mapping::kDw;
using joint_mapping::kDx;
using joint_mapping::PairProblem;
using joint_mapping::Structure;
using joint_mapping::Tile;
using joint_mapping::Wide;

using Index = std::array<std::int64_t, 3>; ///< of a tile: m, k, n

struct TileProduct {
  int product = kDx;
  Index index{};
};

/// Loops over `order[from..]`, outermost first, calling body(index).
template <class Body>
void loop_over(const std::array<int, 3>& order, std::size_t from, std::size_t to,
               const Index& parts, Index index, const Body& body) {
  if (from == to) {
    body(index);
    return;
  }
  const auto dim = static_cast<std::size_t>(order[from]);
  for (index[dim] = 0; index[dim] < parts[dim]; ++index[dim])
    loop_over(order, from + 1, to, parts, index, body);
}

inline Index parts_of(const PairProblem& problem, const Tile& tile) {
  Index parts{};
  for (std::size_t d = 0; d < 3; ++d)
    parts[d] = ceil_div(problem.size[d], tile[d]);
  return parts;
}

/// Every product of tiles in its order.
inline std::vector<TileProduct> tile_products(const Structure& s, const Index& parts) {
  std::vector<TileProduct> out;
  const auto all_of = [&](int product, std::size_t from, const Index& start) {
    loop_over(s.order[static_cast<std::size_t>(product)], from, 3, parts, start,
              [&](const Index& index) {
                out.push_back({product, index});
              });
  };
  const int first = s.first();
  if (s.form == Form::single) {
    all_of(s.product, 0, {});
  } else if (s.form == Form::shared) {
    const auto shared = static_cast<std::size_t>(s.shared);
    loop_over(s.order[0], 0, shared, parts, {}, [&](const Index& index) {
      all_of(first, shared, index);
      all_of(1 - first, shared, index);
    });
  } else {
    all_of(kDx, 0, {});
    all_of(kDw, 0, {});
    std::vector<TileProduct> turns;
    const std::size_t half = out.size() / 2;
    for (std::size_t t = 0; t < half; ++t) {
      turns.push_back(out[first == kDx ? t : half + t]);
      turns.push_back(out[first == kDx ? half + t : t]);
    }
    out = turns;
  }
  return out;
}

/// What one step computes and asks for.
struct Moves {
  std::int64_t cycles = 0;
  std::int64_t read = 0; ///< 1/256 bit
  std::int64_t write = 0;
};

/// While a step computes, what the next one needs comes and what the one before finished goes.
inline Wide time_of_steps(const PairProblem& p, const std::vector<Moves>& steps) {
  Wide time = static_cast<Wide>(steps.front().read + steps.back().write) * p.move_units;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const std::int64_t reads = i + 1 < steps.size() ? steps[i + 1].read : 0;
    const std::int64_t writes = i > 0 ? steps[i - 1].write : 0;
    const Wide compute = static_cast<Wide>(steps[i].cycles) * p.cycle_units;
    const Wide hidden = static_cast<Wide>(reads + (p.hide_writes ? writes : 0)) * p.move_units;
    time += std::max(compute, hidden);
    if (!p.hide_writes)
      time += static_cast<Wide>(writes) * p.move_units;
  }
  return time;
}

struct SimulatedRun {
  std::vector<Moves> steps;
  std::array<std::int64_t, 5> read{}; ///< 1/256 bit by operand
  std::array<std::int64_t, 5> write{};
  std::int64_t update = 0; ///< read and written
  std::int64_t peak = 0;   ///< bits
  std::int64_t peak_tiles = 0;
  std::int64_t fetches = 0; ///< times that a tile came to be on the chip, sums that begin included
  Wide time = 0;
  Wide cycles = 0;
};

/// Static retention as a structure describes it.
class StaticSimulator {
public:
  StaticSimulator(const PairProblem& problem, const Structure& structure, const Tile& tile)
      : p_(problem), s_(structure), tile_(tile), parts_(parts_of(problem, tile)) {}

  SimulatedRun run() {
    for (const TileProduct& op : tile_products(s_, parts_)) {
      read_ = write_ = 0;
      leave_regions(op);
      for (int place = 0; place < 3; ++place)
        use(op, place);
      count_room(op);
      finish(op);
      const std::int64_t cycles = p_.cycles(op.product, extents(op.index));
      run_.steps.push_back({cycles, read_, write_});
      run_.cycles += cycles;
    }
    run_.time = time_of_steps(p_, run_.steps);
    return run_;
  }

private:
  struct Cache {
    std::vector<std::int64_t> region; ///< what must not change for its tiles to stay
    std::set<Index> tiles;
  };

  Tile extents(const Index& index) const {
    Tile out{};
    for (std::size_t d = 0; d < 3; ++d)
      out[d] = std::min(tile_[d], p_.size[d] - index[d] * tile_[d]);
    return out;
  }
  static BackwardOperand operand(const TileProduct& op, int place) {
    return joint_mapping::operand_of(op.product, place);
  }
  static Index tile_of(BackwardOperand o, Index index) {
    index[static_cast<std::size_t>(joint_mapping::absent_dim(o))] = 0;
    return index;
  }
  std::int64_t elements(BackwardOperand o, const Index& index) const {
    const Tile e = extents(index);
    std::int64_t product = 1;
    for (std::size_t d = 0; d < 3; ++d)
      product *= static_cast<int>(d) == joint_mapping::absent_dim(o) ? 1 : e[d];
    return product;
  }

  bool common(BackwardOperand o) const { return o == BackwardOperand::dy && s_.dy != DyUse::separate; }
  /// One per operand and product; dY's own when both use it in common.
  Cache& cache(const TileProduct& op, int place) {
    const BackwardOperand o = operand(op, place);
    return caches_[{static_cast<int>(o), common(o) ? 2 : op.product}];
  }

  /// Indices of the loops that run around what is kept, and the step where nothing is.
  std::vector<std::int64_t> region(const TileProduct& op, int place) {
    const BackwardOperand o = operand(op, place);
    const auto& order = s_.order[static_cast<std::size_t>(op.product)];
    const int absent = joint_mapping::absent_dim(o);
    std::vector<std::int64_t> out;
    if (common(o)) {
      if (s_.form != Form::shared)
        return out;
      for (int q = 0; q < s_.shared; ++q) {
        const int dim = order[static_cast<std::size_t>(q)];
        if (s_.dy == DyUse::once && dim == absent)
          break;
        out.push_back(op.index[static_cast<std::size_t>(dim)]);
      }
      return out;
    }
    if (!s_.once[static_cast<std::size_t>(op.product)][static_cast<std::size_t>(place)])
      return {-1, step_};
    for (const int dim : order) {
      if (dim == absent)
        break;
      out.push_back(op.index[static_cast<std::size_t>(dim)]);
    }
    return out;
  }

  /// Tiles whose loops have moved on are dropped, and the other product's that need not stay.
  void leave_regions(const TileProduct& op) {
    ++step_;
    for (int place = 0; place < 3; ++place) {
      Cache& c = cache(op, place);
      const std::vector<std::int64_t> now = region(op, place);
      if (c.region != now)
        c.tiles.clear();
      c.region = now;
    }
    if (s_.form != Form::shared)
      return;
    for (int place = 0; place < 3; ++place) {
      const TileProduct other{1 - op.product, op.index};
      const BackwardOperand o = operand(other, place);
      const auto& order = s_.order[static_cast<std::size_t>(other.product)];
      const auto loop =
          std::find(order.begin(), order.end(), joint_mapping::absent_dim(o)) - order.begin();
      const bool once =
          s_.once[static_cast<std::size_t>(other.product)][static_cast<std::size_t>(place)];
      if (!common(o) && !(once && loop < s_.shared))
        cache(other, place).tiles.clear();
    }
  }

  void use(const TileProduct& op, int place) {
    const BackwardOperand o = operand(op, place);
    const Index tile = tile_of(o, op.index);
    if (!cache(op, place).tiles.insert(tile).second)
      return;
    ++run_.fetches;
    const auto at = static_cast<std::size_t>(o);
    std::int64_t bits = 0;
    if (place < 2)
      bits = s_.dy == DyUse::present && o == BackwardOperand::dy
                 ? 0
                 : elements(o, op.index) * p_.moved[at];
    else if (terms_[{op.product, tile}] > 0)
      bits = elements(o, op.index) * p_.moved_partial[at];
    read_ += bits;
    run_.read[at] += bits;
  }

  /// Results that are complete leave, and sums that are not kept.
  void finish(const TileProduct& op) {
    const BackwardOperand o = operand(op, 2);
    const auto at = static_cast<std::size_t>(o);
    const std::int64_t count = elements(o, op.index);
    const std::int64_t terms = ++terms_[{op.product, tile_of(o, op.index)}];
    const bool kept = s_.once[static_cast<std::size_t>(op.product)][2];
    if (terms == parts_[static_cast<std::size_t>(joint_mapping::absent_dim(o))]) {
      if (p_.update && op.product == kDw) {
        read_ += count * p_.update_read;
        write_ += count * p_.update_write;
        run_.update += count * (p_.update_read + p_.update_write);
      } else {
        write_ += count * p_.moved[at];
        run_.write[at] += count * p_.moved[at];
      }
    } else if (!kept) {
      write_ += count * p_.moved_partial[at];
      run_.write[at] += count * p_.moved_partial[at];
    }
  }

  void count_room(const TileProduct& op) {
    std::int64_t bits = 0;
    std::int64_t tiles = 0;
    for (const auto& [key, c] : caches_) {
      const auto o = static_cast<BackwardOperand>(key.first);
      if (s_.dy != DyUse::separate && s_.form != Form::shared && o == BackwardOperand::dy) {
        bits += p_.elements(o) * p_.held[static_cast<std::size_t>(key.first)];
        tiles += parts_[0] * parts_[2];
        continue;
      }
      for (const Index& tile : c.tiles)
        bits += elements(o, tile) * p_.held[static_cast<std::size_t>(key.first)];
      tiles += static_cast<std::int64_t>(c.tiles.size());
    }
    if (p_.update && op.product == kDw)
      bits += elements(BackwardOperand::dw, op.index) * p_.update_held;
    run_.peak = std::max(run_.peak, bits);
    run_.peak_tiles = std::max(run_.peak_tiles, tiles);
  }

  const PairProblem& p_;
  const Structure& s_;
  Tile tile_;
  Index parts_;
  std::map<std::pair<int, int>, Cache> caches_;
  std::map<std::pair<int, Index>, std::int64_t> terms_;
  std::int64_t step_ = 0;
  std::int64_t read_ = 0;
  std::int64_t write_ = 0;
  SimulatedRun run_;
};

} // namespace monet::test

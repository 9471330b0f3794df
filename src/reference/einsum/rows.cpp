// Enumerates the mappings of one Einsum and groups them by what its neighbours see. The row table
// (table.cpp) calls make_rows() once per shape.
#include "reference/einsum/rows.hpp"

#include "base/shared/divisors.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

namespace monet::einsum {

namespace {

/// Maximum number of candidates per Einsum: a few seconds for all tiles, milliseconds for coarse.
constexpr std::int64_t kMaxCandidates = 60'000'000;
constexpr std::int64_t kMaxCoarse = 20'000;

using Mask = std::uint32_t; ///< bit set of ranks or operands

Mask relevant_ranks(const Shape::Operand& operand) {
  Mask mask = 0;
  for (const AxisExpr& axis : operand.axes) {
    for (const AffineTerm& term : axis.terms)
      mask |= axis.data_dependent ? 0U : Mask{1} << term.dim;
  }
  return mask;
}

/// The smallest, the middle and the largest divisor.
std::vector<std::int64_t> coarse(const std::vector<std::int64_t>& divisors) {
  std::set<std::int64_t> some{divisors.front(), divisors[divisors.size() / 2], divisors.back()};
  return {some.begin(), some.end()};
}

class Builder {
public:
  Builder(const Shape& shape, const EinsumOptions& options, const SearchControl& control,
          Tiles tiles)
      : shape_(shape), options_(options), control_(control),
        most_(tiles == Tiles::coarse ? kMaxCoarse : kMaxCandidates),
        budget_(options.buffer_bits.value_or(std::numeric_limits<std::int64_t>::max())) {
    const std::size_t ranks = shape.bounds.size();
    for (const std::int64_t bound : shape.bounds) {
      divisors_.push_back(tiles == Tiles::coarse ? coarse(divisors(bound)) : divisors(bound));
      cuttable_ |= bound > 1 ? Mask{1} << (divisors_.size() - 1) : 0U;
    }
    for (std::size_t r = 0; r < shape.whole.size(); ++r)
      cuttable_ &= shape.whole[r] ? ~(Mask{1} << r) : ~Mask{0};
    for (const Shape::Operand& operand : shape.operands) {
      relevant_.push_back(relevant_ranks(operand));
      Mask direct = 0;
      for (std::uint32_t r = 0; r < ranks; ++r)
        direct |= direct_axis(operand, r) >= 0 ? Mask{1} << r : 0U;
      direct_.push_back(direct);
      sizes_.push_back(einsum::tile_bits(operand, shape.bounds.data()));
      if (operand.written) // results are never cut along overlapping windows
        cuttable_ &= ~(relevant_.back() & ~direct);
    }
    tiles_.assign((shape.operands.size() + 1) * ranks, 0);
    std::ranges::copy(shape.bounds, tiles_.begin());
    level_.assign(shape.operands.size(), kInDram);
    held_.assign(shape.operands.size(), 0);
    twin_.assign(shape.operands.size(), -1);
  }

  Rows build() {
    list();
    if (most_ == kMaxCoarse) { // small tiles first (most likely to fit), then large ones
      for (std::vector<std::int64_t>& sizes : divisors_)
        std::ranges::reverse(sizes);
      visits_ = 0;
      complete_ = true;
      list();
    }
    return finish();
  }

private:
  void list() {
    const Mask all = (Mask{1} << shape_.operands.size()) - 1;
    Mask sharable = 0;
    for (std::size_t o = 0; o < shape_.operands.size(); ++o)
      sharable |= options_.fuse && shape_.operands[o].may_share ? Mask{1} << o : 0U;
    for (Mask shared = sharable;; shared = (shared - 1) & sharable) {
      shared_ = shared;
      find_twins();
      place(all, 0, -1, 0);
      if (shared == 0)
        break;
    }
  }

  /// The operand whose tile is placed next.
  struct NextTile {
    std::size_t operand = 0;
    Mask left = 0;            ///< operands without a tile, this one included
    std::size_t position = 0; ///< number of tiles above
    Mask allowed = 0;         ///< ranks that may be cut above it
    bool fused = false;       ///< a shared tensor has no tile yet: loops are shared
    std::int64_t dram = 0;    ///< bits of the tiles above
  };

  std::size_t ranks() const { return shape_.bounds.size(); }
  std::int64_t* tiles(std::size_t position) { return tiles_.data() + position * ranks(); }
  bool is_shared(std::size_t o) const { return (shared_ >> o & 1U) != 0; }

  /// Finds interchangeable operands, of which only one order is enumerated.
  void find_twins() {
    for (std::size_t o = 0; o < shape_.operands.size(); ++o) {
      twin_[o] = -1;
      for (std::size_t p = 0; p < o && !is_shared(o); ++p) {
        if (!is_shared(p) && shape_.operands[p].axes == shape_.operands[o].axes &&
            shape_.operands[p].extents == shape_.operands[o].extents &&
            shape_.operands[p].bits == shape_.operands[o].bits &&
            shape_.operands[p].written == shape_.operands[o].written)
          twin_[o] = static_cast<int>(p);
      }
    }
  }

  /// Whether every divisible rank indexes the operand directly. A smaller tile then costs no
  /// traffic, so the operand is placed last.
  bool free_to_shrink(std::size_t o) const {
    return !is_shared(o) && (cuttable_ & ~direct_[o]) == 0;
  }

  std::int64_t traffic(std::size_t o, std::size_t position, Mask gap) {
    if (is_shared(o))
      return shape_.operands[o].share_bits;
    const std::int64_t* now = tiles(position);
    const Mask relevant = relevant_[o];
    std::int64_t repeats = 1;
    for (std::size_t r = 0; r < ranks(); ++r)
      repeats *= (relevant >> r & 1U) == 0 ? shape_.bounds[r] / now[r] : 1;
    if (shape_.operands[o].written)
      return sizes_[o] * (2 * repeats - 1);
    const Mask windows = relevant & ~direct_[o] & cuttable_;
    return windows == 0 ? sizes_[o] * repeats : swept(o, position, gap & windows) * repeats;
  }

  /// Bits loaded in one sweep over an operand with overlapping tiles. The loop right above the tile
  /// loads only new data.
  std::int64_t swept(std::size_t o, std::size_t position, Mask windows_above) {
    const Shape::Operand& operand = shape_.operands[o];
    scratch_.assign(tiles(position), tiles(position) + ranks());
    const auto total = [&] {
      std::int64_t sweeps = 1;
      for (std::size_t r = 0; r < ranks(); ++r)
        sweeps *= (relevant_[o] >> r & 1U) != 0 ? shape_.bounds[r] / scratch_[r] : 1;
      return sweeps * einsum::tile_bits(operand, scratch_.data());
    };
    std::int64_t best = total();
    const std::int64_t* before = tiles(position - 1);
    for (std::size_t r = 0; r < ranks(); ++r) {
      if ((windows_above >> r & 1U) == 0)
        continue;
      const std::int64_t kept = std::exchange(scratch_[r], before[r]);
      best = std::min(best, total());
      scratch_[r] = kept;
    }
    return best;
  }

  Mask allowed_above(std::size_t o, Mask left, int previous) const {
    Mask allowed = cuttable_;
    bool fused = false;
    for (std::size_t t = 0; t < shape_.operands.size(); ++t) {
      if ((left >> t & 1U) != 0 && is_shared(t)) { // no element is computed twice
        allowed &= direct_[t];
        fused = true;
      }
    }
    // The previous tile can move below a loop that indexes it at equal traffic, so such loops are
    // skipped here. If that needs a swap with a shared loop, the neighbours may not have the other
    // loop order; the reference ignores this.
    if (previous >= 0 && !is_shared(static_cast<std::size_t>(previous)) &&
        (!fused || options_.reference_rules))
      allowed &= ~direct_[static_cast<std::size_t>(previous)];
    // This tile can move above a loop that does not index it at no more traffic.
    if (!fused)
      allowed &= relevant_[o];
    return allowed;
  }

  /// Enumerates the next tile, from the outside in, and the loops above it.
  void place(Mask left, std::size_t position, int previous, std::int64_t dram) {
    if (out_of_work())
      return;
    UnorderedRows* const before = current_;
    if (current_ == nullptr && (left & shared_) == 0)
      current_ = shared_part();
    if (left == 0)
      emit(position, dram);
    else
      choose(left, position, previous, dram);
    current_ = before;
  }

  void choose(Mask left, std::size_t position, int previous, std::int64_t dram) {
    const bool only_free = rest_is_free(left);
    const bool fused = (left & shared_) != 0;
    for (std::size_t o = 0; o < shape_.operands.size(); ++o) {
      if ((left >> o & 1U) == 0 || (free_to_shrink(o) && !only_free))
        continue;
      if (twin_[o] >= 0 && (left >> twin_[o] & 1U) != 0)
        continue;
      order_.push_back(static_cast<std::uint8_t>(o));
      const NextTile next{o, left, position, allowed_above(o, left, previous), fused, dram};
      std::copy_n(tiles(position), ranks(), tiles(position + 1));
      if (!fused && (only_free || (left & (left - 1)) == 0))
        finish_last(next);
      else
        cut(next, 0);
      order_.pop_back();
      if (only_free)
        break;
    }
  }

  bool rest_is_free(Mask left) const {
    for (std::size_t o = 0; o < shape_.operands.size(); ++o) {
      if ((left >> o & 1U) != 0 && !free_to_shrink(o))
        return false;
    }
    return true;
  }

  /// Places the innermost tile, with the minimum tile size.
  void finish_last(const NextTile& next) {
    const Mask windows = relevant_[next.operand] & ~direct_[next.operand];
    if ((next.allowed & windows) != 0) { // smaller overlapping tiles mean more traffic
      cut(next, 0);
      return;
    }
    Mask gap = 0;
    for (std::size_t r = 0; r < ranks(); ++r) {
      std::int64_t& tile = tiles(next.position + 1)[r];
      if ((next.allowed >> r & 1U) != 0 && tile > 1) {
        tile = 1;
        gap |= Mask{1} << r;
      }
    }
    hold(next, gap);
  }

  /// Enumerates tile sizes of the ranks from `rank` on that may be cut above the next tile.
  void cut(const NextTile& next, std::size_t rank) {
    while (rank < ranks() && (next.allowed >> rank & 1U) == 0)
      ++rank;
    const std::int64_t* const above = tiles(next.position);
    std::int64_t* const own = tiles(next.position + 1);
    if (rank == ranks()) {
      Mask gap = 0;
      for (std::size_t r = 0; r < ranks(); ++r)
        gap |= own[r] != above[r] ? Mask{1} << r : 0U;
      const bool inner = next.position > 0 && next.fused && gap != 0;
      const std::size_t previous = inner ? order_[next.position - 1] : 0;
      const bool lowers = inner && !is_shared(previous) && (gap & ~direct_[previous]) == 0;
      if (!lowers)
        hold(next, gap);
      return;
    }
    const std::int64_t outer = above[rank];
    for (const std::int64_t tile : divisors_[rank]) {
      if (tile > outer || outer % tile != 0 || !complete_)
        continue;
      const bool loop = next.fused && tile != outer;
      const Mask bit = loop ? Mask{1} << rank : 0U;
      if ((fused_ranks_ & bit) != 0 || (loop && loops_ == options_.max_fused_loops))
        continue;
      fused_ranks_ ^= bit;
      loops_ += loop ? 1 : 0;
      own[rank] = tile;
      cut(next, rank + 1);
      fused_ranks_ ^= bit;
      loops_ -= loop ? 1 : 0;
    }
    own[rank] = outer;
  }

  /// Places the next tile below the loops `gap`.
  void hold(const NextTile& next, Mask gap) {
    const std::size_t o = next.operand;
    const std::size_t below = next.position + 1;
    const std::int64_t bits = einsum::tile_bits(shape_.operands[o], tiles(below));
    ++seen_;
    if (bits > budget_ - used_) {
      if ((seen_ & 0xFFF) == 0 && control_.interrupted())
        complete_ = false;
      return;
    }
    ++kept_;
    const std::size_t blocks = blocks_.size();
    if (next.fused && gap != 0)
      blocks_.push_back(block(gap, next.position));
    level_[o] = is_shared(o) ? loops_ : kInDram;
    held_[o] = bits;
    depth_.push_back(next.fused ? loops_ : std::numeric_limits<int>::max());
    used_ += bits;
    traffic_.push_back(traffic(o, below, gap));
    place(next.left & ~(Mask{1} << o), below, static_cast<int>(o), next.dram + traffic_.back());
    traffic_.pop_back();
    used_ -= bits;
    depth_.pop_back();
    level_[o] = kInDram;
    blocks_.resize(blocks);
  }

  std::vector<PathLoop> block(Mask gap, std::size_t position) {
    std::vector<PathLoop> loops;
    for (std::uint32_t r = 0; r < ranks(); ++r) {
      if ((gap >> r & 1U) != 0) {
        const std::int64_t tile = tiles(position + 1)[r];
        loops.push_back({r, tile, tiles(position)[r] / tile});
      }
    }
    return loops;
  }

  /// The pending rows of the current shared part (levels and shared loops); created if missing.
  UnorderedRows* shared_part() {
    PathKey key(level_.begin(), level_.end());
    for (const std::vector<PathLoop>& loops : blocks_) {
      key.push_back(static_cast<std::int64_t>(loops.size()));
      append_loops(key, loops);
    }
    UnorderedRows& pending = pending_[key];
    if (pending.group.levels.empty()) {
      pending.blocks = blocks_;
      pending.group.levels = level_;
      pending.group.tile_bits = held_;
      pending.group.path.resize(static_cast<std::size_t>(loops_));
    }
    return &pending;
  }

  void emit(std::size_t position, std::int64_t dram) {
    RowGroup& group = current_->group;
    row_.assign(1, dram);
    for (int level = 0; level < loops_; ++level) {
      std::int64_t above = 0;
      for (std::size_t i = 0; i < position; ++i)
        above += depth_[i] <= level ? held_[order_[i]] : 0;
      row_.push_back(above);
    }
    row_.push_back(used_);
    ++emitted_;
    for (std::size_t i = group.size(); i-- > 0;) {
      if (std::equal(row_.begin(), row_.end(), group.row(i),
                     [](std::int64_t ours, std::int64_t other) { return ours >= other; }))
        return;
    }
    group.values.insert(group.values.end(), row_.begin(), row_.end());
    group.sources.push_back(static_cast<std::uint32_t>(sources_.size()));
    const auto first = tiles_.begin() + static_cast<std::ptrdiff_t>(ranks());
    sources_.push_back(
        {order_, {first, first + static_cast<std::ptrdiff_t>(position * ranks())}, traffic_});
    if (group.size() >= 64 && (group.size() & (group.size() - 1)) == 0)
      keep_pareto(group);
  }

  bool out_of_work() {
    if (!complete_)
      return true;
    if ((visits_++ & 0x3FF) == 0 && (visits_ > most_ || control_.interrupted()))
      complete_ = false;
    return !complete_;
  }

  Rows finish() {
    Rows rows;
    const bool interrupted = control_.interrupted(); // expanding would take too long
    rows.complete = complete_ && !interrupted;
    if (interrupted)
      return rows;
    std::map<PathKey, RowGroup> groups;
    for (auto& [key, pending] : pending_) {
      keep_pareto(pending.group);
      if (pending.group.size() > 0)
        add_orders(pending, groups);
    }
    std::vector<std::uint32_t> renumbered(sources_.size(), 0);
    std::int64_t after = 0;
    for (auto& [key, group] : groups) {
      keep_pareto(group);
      after += static_cast<std::int64_t>(group.size());
      for (std::uint32_t& source : group.sources) {
        if (renumbered[source] == 0) {
          rows.sources.push_back(sources_[source]);
          renumbered[source] = static_cast<std::uint32_t>(rows.sources.size());
        }
        source = renumbered[source] - 1;
      }
      rows.groups.push_back(std::move(group));
    }
    rows.rules = {{"tiles that fit the buffer", seen_, kept_},
                  {"mappings that no other of their kind dominates", emitted_, after}};
    return rows;
  }

  const Shape& shape_;
  const EinsumOptions& options_;
  const SearchControl& control_;
  std::int64_t most_; ///< maximum number of candidates
  std::int64_t budget_;
  std::vector<std::vector<std::int64_t>> divisors_;
  Mask cuttable_ = 0;
  std::vector<Mask> relevant_;
  std::vector<Mask> direct_;
  std::vector<std::int64_t> sizes_; ///< bits of each operand
  std::vector<int> twin_;

  Mask shared_ = 0;
  std::vector<std::int64_t> tiles_; ///< [position][rank]; position 0: the bounds
  std::vector<std::uint8_t> order_;
  std::vector<std::int64_t> traffic_; ///< per position: DRAM bits
  std::vector<int> depth_;            ///< per position: shared loops above
  std::vector<int> level_;
  std::vector<std::int64_t> held_;
  Mask fused_ranks_ = 0; ///< ranks with a shared loop; at most one loop per rank
  int loops_ = 0;
  std::int64_t used_ = 0;
  std::vector<std::vector<PathLoop>> blocks_;
  std::vector<std::int64_t> scratch_;

  std::map<PathKey, UnorderedRows> pending_;
  UnorderedRows* current_ = nullptr; ///< set once all shared tensors are placed
  std::vector<std::int64_t> row_;
  std::vector<RowSource> sources_;
  std::int64_t visits_ = 0;
  std::int64_t emitted_ = 0;
  std::int64_t seen_ = 0;
  std::int64_t kept_ = 0;
  bool complete_ = true;
};

} // namespace

Rows make_rows(const Shape& shape, const EinsumOptions& options, const SearchControl& control,
               Tiles tiles) {
  return Builder(shape, options, control, tiles).build();
}

} // namespace monet::einsum

// Closed-form choice of the loops outside on-chip memories for streamed operands;
// mapping_search.cpp calls it.
#include "core_cost/search/outer_tiling.hpp"

#include "base/shared/divisors.hpp"

#include "monet/base/stop.hpp"

#include <algorithm>
#include <array>

namespace monet::core_cost_detail {

namespace {

constexpr double kMaxTilings = 20'000; ///< tried per nest; of longer lists divisors are left out

/// 1, the whole, and of the others those that are `ratio` times the one before.
std::vector<std::int64_t> thinned(const std::vector<std::int64_t>& parts, double ratio) {
  std::vector<std::int64_t> kept{parts.front()};
  for (std::size_t i = 1; i < parts.size(); ++i) {
    if (i + 1 == parts.size() ||
        static_cast<double>(parts[i]) >= ratio * static_cast<double>(kept.back()))
      kept.push_back(parts[i]);
  }
  return kept;
}

/// A loop with work left, and what of it may be on the chip at a time, rising.
struct Cuttable {
  std::uint32_t dim = 0;
  std::int64_t size = 1;
  std::vector<std::int64_t> inside;
};

std::vector<Cuttable> cuttable_loops(const SpatialModel& spatial) {
  std::vector<Cuttable> loops;
  for (std::size_t d = 0; d < spatial.temporal.size(); ++d) {
    if (spatial.temporal[d] > 1)
      loops.push_back(
          {static_cast<std::uint32_t>(d), spatial.temporal[d], divisors(spatial.temporal[d])});
  }
  for (double ratio = 1.5; ratio < 1e6; ratio *= 1.5) {
    double tilings = 1;
    for (const Cuttable& loop : loops)
      tilings *= static_cast<double>(loop.inside.size());
    if (tilings <= kMaxTilings)
      break;
    for (Cuttable& loop : loops)
      loop.inside = thinned(loop.inside, ratio);
  }
  return loops;
}

/// Walks all tilings that fit.
class TilingWalk {
public:
  TilingWalk(const NestModel& model, const Hierarchy& hierarchy, const SpatialModel& spatial,
             const OffchipRate& rate, double below)
      : model_(model), hierarchy_(hierarchy), rate_(rate), loops_(cuttable_loops(spatial)),
        inside_(loops_.size(), 1), best_(model.operands.size(), OuterTiling{{}, below}) {
    for (std::size_t i = 0; i < model.operands.size(); ++i) {
      const std::size_t levels = hierarchy.levels[i].size();
      top_[i] = hierarchy.is_offchip(i, levels - 1) ? levels - 2 : levels - 1;
      streams_[i] = top_[i] + 1 < levels;
      slice_.emplace_back(model.operands[i]);
      for (std::size_t l = 0; l <= top_[i]; ++l) {
        for (const Loop& loop : spatial.exact.operands[i].lists[l])
          slice_[i].multiply(loop);
      }
    }
    room_.resize(hierarchy.nodes.size());
  }

  std::vector<OuterTiling> run() {
    visit(0);
    std::erase_if(best_, [](const OuterTiling& t) { return t.outer.empty(); });
    std::ranges::stable_sort(best_, {}, &OuterTiling::cycles);
    return best_;
  }

private:
  /// A larger part of a loop takes no less room but where it ends a sum: the others end at the
  /// first that does not fit.
  void visit(std::size_t depth) {
    if (depth == loops_.size()) {
      for (std::size_t kept = 0; kept < best_.size(); ++kept)
        price(kept);
      return;
    }
    check_stop();
    const std::vector<Footprint> before = slice_;
    for (const std::int64_t part : loops_[depth].inside) {
      slice_ = before;
      inside_[depth] = part;
      for (Footprint& slice : slice_)
        slice.multiply({loops_[depth].dim, static_cast<double>(part)});
      if (fits(depth + 1))
        visit(depth + 1);
      else if (relevant(model_.output, depth))
        break;
    }
    slice_ = before;
    inside_[depth] = 1;
  }

  /// With the first `cut` loops cut. Sums that loops outside go on with have their open width.
  bool fits(std::size_t cut) {
    std::ranges::fill(room_, 0.0);
    for (std::size_t i = 0; i < slice_.size(); ++i) {
      const OperandModel& o = model_.operands[i];
      bool open = false;
      for (std::size_t k = 0; o.output && k < cut; ++k)
        open = open || (times(k) > 1 && !relevant(i, k));
      const std::size_t node = hierarchy_.levels[i][top_[i]].node;
      room_[node] += slice_[i].elements() * static_cast<double>(open ? o.partial_bits : o.bits);
      if (room_[node] > hierarchy_.nodes[node].size_bits)
        return false;
    }
    return true;
  }

  /// With the loops that do not touch operand `kept` innermost of those outside.
  void price(std::size_t kept) {
    if (!streams_[kept])
      return;
    OffchipTraffic all;
    for (std::size_t i = 0; i < slice_.size(); ++i) {
      if (streams_[i])
        add_traffic(i, kept, all);
    }
    const double cycles = rate_.cycles(all);
    if (cycles < best_[kept].cycles)
      best_[kept] = {outside(kept), cycles};
  }

  std::int64_t times(std::size_t loop) const { return loops_[loop].size / inside_[loop]; }

  bool touches(std::size_t operand, std::size_t loop) const {
    return model_.operands[operand].relevance[loops_[loop].dim] != Relevance::irrelevant;
  }

  bool relevant(std::size_t operand, std::size_t loop) const {
    return model_.operands[operand].relevance[loops_[loop].dim] == Relevance::relevant;
  }

  /// Loops outside that come before all that touch the operand reuse its slice; others move it
  /// again, an output's as partial sums.
  void add_traffic(std::size_t operand, std::size_t kept, OffchipTraffic& all) const {
    double slices = 1;
    double again = 1;
    bool reused = true;
    for (const bool first : {true, false}) {
      for (std::size_t k = 0; k < loops_.size(); ++k) {
        if (times(k) == 1 || touches(kept, k) == first)
          continue;
        reused = reused && !touches(operand, k);
        if (touches(operand, k))
          slices *= static_cast<double>(times(k));
        else if (!reused)
          again *= static_cast<double>(times(k));
      }
    }
    const OperandModel& o = model_.operands[operand];
    const double elements = slice_[operand].elements() * slices;
    const auto bits = static_cast<double>(o.bits);
    const auto whole = [](double count) {
      return Bits{static_cast<std::int64_t>(std::min(count, 9e18))};
    };
    if (!o.output) {
      all.read += whole(elements * bits * again);
      return;
    }
    const double sums = elements * static_cast<double>(o.partial_bits) * (again - 1);
    all.read += whole(sums);
    all.write += whole(sums + elements * bits);
  }

  std::vector<Loop> outside(std::size_t kept) const {
    std::vector<Loop> outer;
    for (const bool first : {true, false}) {
      for (std::size_t k = 0; k < loops_.size(); ++k) {
        if (times(k) > 1 && touches(kept, k) != first)
          outer.push_back({loops_[k].dim, static_cast<double>(times(k))});
      }
    }
    return outer;
  }

  const NestModel& model_;
  const Hierarchy& hierarchy_;
  const OffchipRate& rate_;
  std::vector<Cuttable> loops_;
  std::vector<std::int64_t> inside_; ///< of each of them: iterations on the chip at a time
  std::array<std::size_t, kMaxOperands> top_{}; ///< outermost level on the chip
  std::array<bool, kMaxOperands> streams_{};
  std::vector<Footprint> slice_;  ///< per operand: held there
  std::vector<double> room_;      ///< per memory: bits taken
  std::vector<OuterTiling> best_; ///< per operand kept
};

} // namespace

std::vector<OuterTiling> outer_tilings(const NestModel& model, const Hierarchy& hierarchy,
                                       const SpatialModel& spatial, const OffchipRate& rate,
                                       double below) {
  return TilingWalk(model, hierarchy, spatial, rate, below).run();
}

TemporalSpace space_inside(const SpatialModel& spatial, const OuterTiling& tiling, int lpf_limit) {
  std::vector<std::int64_t> inside = spatial.temporal;
  for (const Loop& loop : tiling.outer)
    inside[loop.dim] /= static_cast<std::int64_t>(loop.size);
  TemporalSpace space;
  space.factors = temporal_factors(inside, lpf_limit);
  for (const Loop& loop : tiling.outer) {
    space.factors.push_back(loop);
    space.outer.insert(space.outer.begin(), PlaceRule{loop.dim, loop.size});
  }
  return space;
}

} // namespace monet::core_cost_detail

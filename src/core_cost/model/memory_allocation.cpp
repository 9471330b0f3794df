// Allocates the loops of each operand to memory levels for one order of temporal loops; data
// movement follows from it.
#include "core_cost/model/memory_allocation.hpp"

#include <algorithm>

namespace monet::core_cost_detail {

namespace {

/// Slices of one operand that fit in a memory on their own.
struct Slices {
  std::size_t operand = 0;
  std::size_t done = 0;  ///< loops below this memory
  std::size_t first = 0; ///< the smallest allowed choice
  std::size_t count = 0; ///< choices [first, count), in further loops
  bool open = false;     ///< loops that are still to come may fit too
  bool falling = true;   ///< a larger slice takes no less room and leaves no more accesses
  std::array<double, kMaxTemporalLoops + 1> bits;     ///< of one slice
  std::array<double, kMaxTemporalLoops + 1> room;     ///< what it takes of the memory
  std::array<double, kMaxTemporalLoops + 1> accesses; ///< bits moved from the level above
};

/// Elements of a slice. Fractional unrollings are multiplied in ZigZag's order (dims one by one,
/// then their product by axes), since the last digit separates slices with equal accesses.
template <bool Fractional>
class SliceFootprint {
public:
  explicit SliceFootprint(const OperandModel& operand) : operand_(&operand), footprint_(operand) {
    if constexpr (Fractional)
      sizes_.fill(1);
  }
  void multiply(const Loop& loop) {
    footprint_.multiply(loop);
    if constexpr (Fractional)
      sizes_[loop.dim] *= loop.size;
  }
  double elements() const {
    if constexpr (!Fractional) {
      return footprint_.elements();
    } else {
      double product = operand_->fixed;
      for (std::size_t i = 0; i < operand_->relevant_count; ++i)
        product *= sizes_[operand_->relevant[i]];
      for (std::size_t i = 0; i < operand_->axes; ++i)
        product *= footprint_.on_axis(i);
      return product;
    }
  }

private:
  const OperandModel* operand_;
  Footprint footprint_;
  std::array<double, Fractional ? kMaxDims : 1> sizes_;
};

/// One pass over the memories, bottom-up.
template <bool Fractional>
class MemoryPass {
public:
  MemoryPass(const NestModel& model, const Hierarchy& hierarchy, const SpatialForm& spatial,
             const OrderBeginning& beginning, PartialAllocation& allocation,
             AllocationFailure* failure)
      : model_(model), hierarchy_(hierarchy), spatial_(spatial), order_(beginning.loops),
        rest_(beginning.rest), allocation_(allocation),
        failure_(failure), footprint_{SliceFootprint<Fractional>(operand_or_first(model, 0)),
                                      SliceFootprint<Fractional>(operand_or_first(model, 1)),
                                      SliceFootprint<Fractional>(operand_or_first(model, 2)),
                                      SliceFootprint<Fractional>(operand_or_first(model, 3))} {
    static_assert(kMaxOperands == 4);
    allocation.levels.fill(0);
    for (std::size_t i = 0; i < model.operands.size(); ++i) {
      for (const Loop& loop : spatial.operands[i].lists[0])
        footprint_[i].multiply(loop);
    }
  }

  bool fill() {
    for (std::size_t n = 0; n < hierarchy_.nodes.size(); ++n) {
      if (!fill_node(n))
        return false;
    }
    return true;
  }

private:
  bool fill_node(std::size_t n) {
    const Node& node = hierarchy_.nodes[n];
    users_ = node.uses.size();
    bool undecided = false;
    for (std::size_t u = 0; u < users_; ++u) {
      if (waiting_[node.uses[u].operand]) {
        undecided = true;
        continue;
      }
      if (!list_slices(n, node.uses[u], slices_[u]))
        return false;
      undecided = undecided || slices_[u].open;
    }
    if (undecided) {
      for (const NodeUse& use : node.uses)
        waiting_[use.operand] = true;
      return true;
    }
    for (std::size_t u = 0; u < users_; ++u) {
      price_slices(slices_[u], node.uses[u].top);
      take_room(slices_[u], node.size_bits, node.uses[u].top);
    }
    if (!choose(node))
      return fail({n, node.uses[0].operand, min_room(), true});
    commit(node);
    return true;
  }

  /// For a top level, which has to hold all loops that are left: if they fit, so does any part.
  bool take_all(std::size_t operand, double bits, double capacity, Slices& slices) const {
    SliceFootprint<Fractional> footprint = footprint_[operand];
    for (const Loop& loop : order_.subspan(slices.done))
      footprint.multiply(loop);
    const double size = footprint.elements() * bits;
    if (size > capacity)
      return false;
    slices.first = order_.size() - slices.done;
    slices.count = slices.first + 1;
    slices.bits[slices.first] = size;
    slices.room[slices.first] = size;
    return true;
  }

  /// False when even the smallest slice does not fit.
  bool list_slices(std::size_t n, const NodeUse& use, Slices& slices) {
    const double capacity = hierarchy_.nodes[n].size_bits;
    const auto bits = static_cast<double>(width(use.operand));
    slices.operand = use.operand;
    slices.done = done_[use.operand];
    slices.first = 0;
    slices.count = 0;
    slices.open = false;
    if (use.top && !rest_.any && take_all(use.operand, bits, capacity, slices))
      return true;
    SliceFootprint<Fractional> footprint = footprint_[use.operand];
    for (std::size_t i = slices.done;; ++i) {
      const double size = footprint.elements() * bits;
      if (size > capacity) {
        if (i == slices.done)
          return fail({n, use.operand, size, false});
        break;
      }
      slices.bits[slices.count] = size;
      slices.room[slices.count++] = size;
      if (i == order_.size()) {
        slices.open = rest_.any;
        break;
      }
      footprint.multiply(order_[i]);
    }
    if (use.top && !slices.open) {
      slices.first = slices.count - 1;
      const std::size_t placed = slices.done + slices.first;
      if (placed != order_.size() || rest_.any) {
        for (std::size_t i = placed + 1; i < order_.size(); ++i)
          footprint.multiply(order_[i]);
        return fail({n, use.operand, footprint.elements() * bits, false});
      }
    }
    return true;
  }

  void price_slices(Slices& slices, bool top) const {
    slices.falling = true;
    if (top) {
      slices.accesses[slices.first] = 0;
      return;
    }
    double outside = rest_.iterations;
    for (std::size_t i = order_.size(); i-- > slices.done;) {
      if (const std::size_t k = i - slices.done + 1; k < slices.count)
        slices.accesses[k] = outside * slices.bits[k];
      outside *= order_[i].size;
    }
    slices.accesses[0] = outside * slices.bits[0];
    for (std::size_t k = 1; k < slices.count; ++k) {
      slices.falling = slices.falling && slices.accesses[k] <= slices.accesses[k - 1] &&
                       slices.bits[k] >= slices.bits[k - 1];
    }
  }

  /// With reserved double buffers a slice that is replaced while it is in use counts twice.
  void take_room(Slices& slices, double capacity, bool top) const {
    if (!model_.choices.reserve_double_buffers || top || 2 * slices.bits[0] > capacity)
      return;
    for (std::size_t k = slices.first; k < slices.count; ++k) {
      const bool all = slices.done + k == order_.size() && !rest_.any;
      if (!all)
        slices.room[k] *= 2;
    }
    slices.falling = false;
  }

  /// Width of an operand in its next memory: that of partial sums as long as a loop outside still
  /// adds to them.
  std::int64_t width(std::size_t operand) const {
    const OperandModel& o = model_.operands[operand];
    if (!o.output)
      return o.bits;
    if (rest_.reduces)
      return o.partial_bits;
    for (std::size_t i = done_[operand]; i < order_.size(); ++i) {
      if (reduces(o, order_[i]))
        return o.partial_bits;
    }
    const std::size_t levels = hierarchy_.levels[operand].size();
    for (std::size_t l = allocation_.levels[operand] + std::size_t{1}; l <= levels; ++l) {
      for (const Loop& loop : spatial_.operands[operand].lists[l]) {
        if (reduces(o, loop))
          return o.partial_bits;
      }
    }
    return o.bits;
  }

  bool choose(const Node& node) {
    const bool falling = !model_.even_allocation &&
                         std::all_of(slices_.begin(), slices_.begin() + static_cast<long>(users_),
                                     [](const Slices& s) { return s.falling; });
    if (falling)
      return choose_last(node.size_bits);
    if (choose_any(node.size_bits))
      return true;
    if (model_.even_allocation && choose_nothing())
      return min_room() <= node.size_bits;
    if (!model_.choices.reserve_double_buffers)
      return false;
    for (std::size_t u = 0; u < users_; ++u)
      slices_[u].room = slices_[u].bits; // no room for second buffers
    return choose_any(node.size_bits);
  }
  using Combination = std::array<std::size_t, kMaxOperands>; ///< slice per user
  struct Sum {
    double room = 0;
    double accesses = 0;
  };

  Sum sum_of(const Combination& at, std::size_t users) const {
    Sum sum;
    for (std::size_t u = 0; u < users; ++u) {
      sum.room += slices_[u].room[at[u]];
      sum.accesses += slices_[u].accesses[at[u]];
    }
    return sum;
  }

  /// The next combination of the first `users` slices, of which the first varies slowest. False
  /// after the last.
  bool advance(Combination& at, std::size_t users) const {
    for (std::size_t u = users; u-- > 0;) {
      if (++at[u] < slices_[u].count)
        return true;
      at[u] = slices_[u].first;
    }
    return false;
  }

  /// Chooses slices if larger ones are never worse: the last user has the largest slice that fits
  /// with the others, so only combinations of the others are tried.
  bool choose_last(double capacity) {
    Combination at{};
    for (std::size_t u = 0; u < users_; ++u)
      at[u] = slices_[u].count - 1;
    if (sum_of(at, users_).room <= capacity) {
      chosen_ = at;
      return true;
    }
    const std::size_t others = users_ - 1;
    const Slices& last = slices_[others];
    for (std::size_t u = 0; u < others; ++u)
      at[u] = slices_[u].first;
    bool found = false;
    double least = 0;
    do {
      Sum sum = sum_of(at, others);
      std::size_t k = last.count;
      while (k > last.first && sum.room + last.room[k - 1] > capacity)
        --k;
      if (k == last.first)
        continue;
      sum.accesses += last.accesses[k - 1];
      if (!found || sum.accesses <= least) {
        found = true;
        least = sum.accesses;
        chosen_ = at;
        chosen_[others] = k - 1;
      }
    } while (advance(at, others));
    return found;
  }

  /// All combinations; the last of the best ones wins.
  bool choose_any(double capacity) {
    Combination at{};
    for (std::size_t u = 0; u < users_; ++u)
      at[u] = slices_[u].first;
    bool found = false;
    double least = 0;
    do {
      const Sum sum = sum_of(at, users_);
      if (sum.room <= capacity && (!found || sum.accesses <= least) &&
          (!model_.even_allocation || even(at))) {
        found = true;
        least = sum.accesses;
        chosen_ = at;
      }
    } while (advance(at, users_));
    return found;
  }

  /// Fallback if no even cut fits: no operand takes a loop. False if an operand must take one.
  bool choose_nothing() {
    chosen_.fill(0);
    return std::all_of(slices_.begin(), slices_.begin() + static_cast<long>(users_),
                       [](const Slices& s) { return s.first == 0; });
  }

  /// "Even" allocation: an operand with more than the minimum loops ends where no other operand in
  /// the memory ends further inside.
  bool even(const Combination& at) const {
    std::size_t least = order_.size();
    for (std::size_t u = 0; u < users_; ++u)
      least = std::min(least, slices_[u].done + at[u]);
    for (std::size_t u = 0; u < users_; ++u) {
      if (at[u] > 0 && slices_[u].done + at[u] > least)
        return false;
    }
    return true;
  }

  void commit(const Node& node) {
    for (std::size_t u = 0; u < users_; ++u) {
      const auto [operand, level, top] = node.uses[u];
      const std::span<const Loop> taken = order_.subspan(done_[operand], chosen_[u]);
      done_[operand] += chosen_[u];
      allocation_.at.cut[operand][level] = static_cast<std::uint8_t>(done_[operand]);
      allocation_.levels[operand] = static_cast<std::uint8_t>(level + 1);
      if (top)
        continue;
      for (const Loop& loop : taken)
        footprint_[operand].multiply(loop);
      for (const Loop& loop : spatial_.operands[operand].lists[level + 1])
        footprint_[operand].multiply(loop);
    }
  }

  double min_room() const {
    double room = 0;
    for (std::size_t u = 0; u < users_; ++u)
      room += slices_[u].room[slices_[u].first];
    return room;
  }

  bool fail(const AllocationFailure& why) const {
    if (failure_ != nullptr)
      *failure_ = why;
    return false;
  }

  const NestModel& model_;
  const Hierarchy& hierarchy_;
  const SpatialForm& spatial_;
  std::span<const Loop> order_;
  const RemainingLoops& rest_;
  PartialAllocation& allocation_;
  AllocationFailure* failure_;
  std::array<std::size_t, kMaxOperands> done_{}; ///< loops placed so far
  std::array<bool, kMaxOperands> waiting_{};     ///< a memory of the operand is undecided
  /// Running footprint per operand; loops of the spatial lists join once their level is passed.
  std::array<SliceFootprint<Fractional>, kMaxOperands> footprint_;
  std::array<Slices, kMaxOperands> slices_;
  std::size_t users_ = 0;
  Combination chosen_{};
};

} // namespace

bool reduces(const OperandModel& output, const Loop& loop) {
  return output.relevance[loop.dim] != Relevance::relevant && loop.size > 1;
}

bool allocate_beginning(const NestModel& model, const Hierarchy& hierarchy,
                        const SpatialForm& spatial, const OrderBeginning& beginning,
                        PartialAllocation& allocation, AllocationFailure* failure) {
  return spatial.fractional
             ? MemoryPass<true>(model, hierarchy, spatial, beginning, allocation, failure).fill()
             : MemoryPass<false>(model, hierarchy, spatial, beginning, allocation, failure).fill();
}

bool allocate(const NestModel& model, const Hierarchy& hierarchy, const SpatialForm& spatial,
              std::span<const Loop> order, Allocation& allocation, AllocationFailure* failure) {
  PartialAllocation partial;
  if (!allocate_beginning(model, hierarchy, spatial, {order}, partial, failure))
    return false;
  allocation = partial.at;
  return true;
}

} // namespace monet::core_cost_detail

// Searches the temporal orders of one unrolling level by level; mapping_search.cpp calls it.
#include "core_cost/search/order_search.hpp"

#include "core_cost/search/order_rank.hpp"

#include "monet/base/stop.hpp"

#include <algorithm>
#include <array>

namespace monet::core_cost_detail {

namespace {

constexpr std::size_t kDiveWidth = 16; ///< beginnings per length that look for a first good order
constexpr std::size_t kQuickDive = 2;  ///< the same where all orders are searched after that
constexpr double kWorthDiving = 20;    ///< orders
constexpr double kAlwaysExact = 50000; ///< orders that are searched whatever the limit
constexpr std::size_t kNoLimit = std::size_t{1} << 40;
constexpr std::size_t kFirstTable = 1024; ///< slots

struct OrderPrefix {
  std::array<std::uint8_t, kMaxTemporalLoops> kinds{};
  PrefixBound outlook;
};

/// Where the beginnings of one length are, by fingerprint. Open addressing; grows by doubling.
class FingerprintTable {
public:
  FingerprintTable() : slots_(kFirstTable, 0) {}

  void clear() { std::fill(slots_.begin(), slots_.end(), 0); }

  /// Position in `all` of the one with the same fingerprint, or where it has just been put: the
  /// end.
  std::size_t find_or_add(const std::vector<OrderPrefix>& all, const Fingerprint& fingerprint) {
    if (2 * (all.size() + 1) > slots_.size())
      grow(all);
    std::uint32_t& slot = slot_of(all, fingerprint);
    if (slot == 0)
      slot = static_cast<std::uint32_t>(all.size() + 1);
    return slot - 1;
  }

  void rebuild(const std::vector<OrderPrefix>& all) {
    clear();
    for (std::size_t i = 0; i < all.size(); ++i)
      slot_of(all, all[i].outlook.fingerprint) = static_cast<std::uint32_t>(i + 1);
  }

private:
  std::uint32_t& slot_of(const std::vector<OrderPrefix>& all, const Fingerprint& fingerprint) {
    std::size_t at = fingerprint.a & (slots_.size() - 1);
    while (slots_[at] != 0 && all[slots_[at] - 1].outlook.fingerprint != fingerprint)
      at = (at + 1) & (slots_.size() - 1);
    return slots_[at];
  }

  void grow(const std::vector<OrderPrefix>& all) {
    slots_.resize(2 * slots_.size());
    rebuild(all);
  }

  std::vector<std::uint32_t> slots_; ///< position + 1; 0 = free. A power of two of them.
};

class OrderSearch {
public:
  OrderSearch(const OrderProblem& problem, const LoopKinds& kinds, const Scorer& scorer,
              BestMapping& best, SearchLog& log)
      : problem_(problem), space_(problem.space), kinds_(kinds), scorer_(scorer), best_(best),
        log_(log), judge_(problem.model, problem.hierarchy, problem.spatial, kinds) {}

  void run(const OrderSearchLimits& limits) {
    log_.effort.space += kinds_.orders();
    const CostBound bound = judge_.bound();
    log_.bound.latency = std::min(log_.bound.latency, bound.latency);
    log_.bound.energy = std::min(log_.bound.energy, bound.energy);
    if (!best_.worth(bound)) {
      log_.effort.pruned += kinds_.orders();
      return;
    }
    visit_first();
    const bool all = kinds_.orders() <= kAlwaysExact;
    if (kinds_.orders() > kWorthDiving)
      sweep(all ? kQuickDive : kDiveWidth, true);
    sweep(all ? kNoLimit : limits.beginnings, false);
  }

private:
  using Kinds = std::span<const std::uint8_t>;

  void visit(Kinds order) {
    ++log_.effort.visited;
    candidate_.size = order.size();
    for (std::size_t i = 0; i < order.size(); ++i)
      candidate_.loops[i] = kinds_.loop[order[i]];
    AllocationFailure why;
    if (!evaluate(problem_.model, problem_.hierarchy, problem_.spatial, candidate_, &why)) {
      note(why);
      return;
    }
    best_.offer(scorer_(candidate_), candidate_.order(), order);
  }

  /// Visits the non-increasing arrangement, the first one of the enumeration. Beginnings alone do
  /// not identify it.
  void visit_first() {
    std::array<std::uint8_t, kMaxTemporalLoops> first{};
    std::size_t size = 0;
    for (std::size_t k = kinds_.loop.size(); k-- > 0;) {
      for (int n = 0; n < kinds_.count[k]; ++n)
        first[size++] = static_cast<std::uint8_t>(k);
    }
    for (std::size_t place = 0; place < size; ++place) {
      if (!space_.allows(kinds_.loop[first[place]], place))
        return;
    }
    early_.push_back(first);
    visit({first.data(), size});
  }

  void sweep(std::size_t width, bool dive) {
    now_.assign(1, OrderPrefix{});
    for (std::size_t length = 0; length < kinds_.loops && !now_.empty(); ++length) {
      next_.clear();
      table_.clear();
      for (const OrderPrefix& from : now_) {
        check_stop();
        extend(from, length, dive);
        if (next_.size() > 2 * width)
          trim(width, dive, length + 1);
      }
      trim(width, dive, length + 1);
      std::swap(now_, next_);
    }
  }

  void extend(const OrderPrefix& from, std::size_t length, bool dive) {
    const auto left = left_after({from.kinds.data(), length});
    OrderPrefix child = from;
    const Kinds kinds{child.kinds.data(), length + 1};
    for (std::size_t k = 0; k < kinds_.loop.size(); ++k) {
      if (left[k] == 0)
        continue;
      child.kinds[length] = static_cast<std::uint8_t>(k);
      if (!space_.allows(kinds_.loop[k], length)) {
        drop(kinds, dive);
        continue;
      }
      if (length + 1 == kinds_.loops) {
        if (visited(kinds))
          continue;
        visit(kinds);
        if (dive)
          early_.push_back(child.kinds);
        continue;
      }
      if (!judge_.judge(kinds, best_.max_cycles(), child.outlook) ||
          !best_.worth(child.outlook.bound)) {
        drop(kinds, dive);
      } else {
        keep(child, length + 1, dive);
      }
    }
  }

  void keep(const OrderPrefix& child, std::size_t length, bool dive) {
    const std::size_t at = table_.find_or_add(next_, child.outlook.fingerprint);
    if (at == next_.size()) {
      next_.push_back(child);
      return;
    }
    const Kinds mine{child.kinds.data(), length};
    const Kinds other{next_[at].kinds.data(), length};
    if (begins_before(mine, other)) {
      drop(other, dive);
      next_[at] = child;
    } else {
      drop(mine, dive);
    }
  }

  void drop(Kinds beginning, bool dive) {
    if (!dive)
      log_.effort.pruned += orders_after(beginning);
  }

  /// Keeps those with the best bounds.
  void trim(std::size_t width, bool dive, std::size_t length) {
    if (next_.size() <= width)
      return;
    std::stable_sort(next_.begin(), next_.end(), [&](const OrderPrefix& a, const OrderPrefix& b) {
      return best_.merit_of(a.outlook.bound) < best_.merit_of(b.outlook.bound);
    });
    if (!dive) {
      log_.effort.exact = false;
      for (std::size_t i = width; i < next_.size(); ++i)
        drop({next_[i].kinds.data(), length}, dive);
    }
    next_.resize(width);
    table_.rebuild(next_);
  }

  /// Orders that start so and have not been visited yet.
  double orders_after(Kinds beginning) const {
    const auto left = left_after(beginning);
    double orders = orders_of({left.data(), kinds_.loop.size()});
    for (const auto& seen : early_)
      orders -= std::equal(beginning.begin(), beginning.end(), seen.begin()) ? 1 : 0;
    return orders;
  }

  bool visited(Kinds order) const {
    return std::any_of(early_.begin(), early_.end(), [&](const auto& seen) {
      return std::equal(order.begin(), order.end(), seen.begin());
    });
  }

  void note(const AllocationFailure& why) {
    if (!log_.failure || why.bits < log_.failure->bits)
      log_.failure = why; // the order that came closest
  }

  std::array<std::uint8_t, kMaxTemporalLoops> left_after(Kinds beginning) const {
    std::array<std::uint8_t, kMaxTemporalLoops> left{};
    std::copy(kinds_.count.begin(), kinds_.count.end(), left.begin());
    for (const std::uint8_t kind : beginning)
      --left[kind];
    return left;
  }

  const OrderProblem& problem_;
  const TemporalSpace& space_;
  const LoopKinds& kinds_;
  const Scorer& scorer_;
  BestMapping& best_;
  SearchLog& log_;
  BeginningJudge judge_;
  Candidate candidate_;
  std::vector<OrderPrefix> now_;
  std::vector<OrderPrefix> next_;
  FingerprintTable table_;
  std::vector<std::array<std::uint8_t, kMaxTemporalLoops>>
      early_; ///< visited before the full sweep
};

} // namespace

double BestMapping::max_cycles() const {
  const bool any = objective_ != Objective::latency || !entry_;
  return any ? std::numeric_limits<double>::infinity() : entry_->score.latency;
}

bool BestMapping::worth(const CostBound& bound) const {
  return !entry_ ||
         merit_of(bound) <= merit(objective_, entry_->score.latency, entry_->score.energy);
}

void BestMapping::offer(const Score& score, std::span<const Loop> order,
                        std::span<const std::uint8_t> kinds) {
  if (entry_) {
    const auto mine = merit(objective_, score.latency, score.energy);
    const auto other = merit(objective_, entry_->score.latency, entry_->score.energy);
    const bool tie =
        mine == other && entry_->unrolling == unrolling_ && enumerated_before(kinds, entry_->kinds);
    if (!(mine < other) && !tie)
      return;
  }
  entry_ = Entry{score, unrolling_, {order.begin(), order.end()}, {kinds.begin(), kinds.end()}};
}

void search_orders(const OrderProblem& problem, const Scorer& scorer,
                   const OrderSearchLimits& limits, BestMapping& best, SearchLog& log) {
  const LoopKinds kinds = make_kinds(problem.model, problem.space.factors);
  best.begin_unrolling();
  OrderSearch(problem, kinds, scorer, best, log).run(limits);
}

} // namespace monet::core_cost_detail

// The time of two products that take turns, each in its order: step by step, except for
// stretches in which steps repeat.
#include "core_cost/joint_mapping/plan.hpp"

#include "monet/base/stop.hpp"

#include <algorithm>
#include <optional>

namespace monet::joint_mapping {

class Plan::Walk {
public:
  explicit Walk(const Plan& plan)
      : plan_(plan),
        leads_(plan.structure_.first()), places_{Position{kDx, {}}, Position{kDw, {}}} {
    for (const int product : {kDx, kDw}) {
      int level = kDims - 1;
      while (level > 0 && parts(product, level) == 1)
        --level;
      innermost_[at(product)] = level;
    }
  }

  Wide run() {
    now_ = step(leads_);
    sum_ = plan_.not_hidden(now_, {});
    for (bool more = true; more;) {
      skip_periods();
      skip_steady();
      const Step follower = step(1 - leads_);
      sum_ += plan_.longer(now_.cycles, follower.read, before_.write);
      more = plan_.advance<true>(places_[at(leads_)]);
      plan_.advance<true>(places_[at(1 - leads_)]);
      const Step next = more ? step(leads_) : Step{};
      sum_ += plan_.longer(follower.cycles, next.read, now_.write);
      before_ = follower;
      now_ = next;
      ++turn_;
      if (++walked_ % 65536 == 0)
        check_stop();
    }
    return sum_ + plan_.not_hidden({}, before_);
  }

private:
  /// Turn at which a loop of a product last restarted, with no other loop at an end.
  struct Mark {
    std::int64_t turn = 0;
    std::int64_t other = 0; ///< index of the other product's innermost loop
    Wide sum = 0;
  };

  bool is_once() const { return plan_.structure_.dy == DyUse::once; }
  int dim(int product, int level) const { return plan_.structure_.order[at(product)][at(level)]; }
  std::int64_t parts(int product, int level) const { return plan_.parts_[at(dim(product, level))]; }
  std::int64_t& index(int product, int level) {
    return places_[at(product)].index[at(dim(product, level))];
  }
  Step step(int product) const {
    const Position& place = places_[at(product)];
    return is_once() ? plan_.step(place) : plan_.known(place);
  }

  /// Turns for which the innermost loop of a product stays away from both of its ends, and the
  /// product cannot be the first at a tile of dY.
  std::int64_t turns_inside(int product) {
    const int level = innermost_[at(product)];
    const std::int64_t at_index = index(product, level);
    const bool may_touch =
        is_once() && dim(product, level) != 1 && places_[at(product)].index[1] == 0;
    return at_index < 1 || may_touch ? 0 : parts(product, level) - 2 - at_index;
  }

  /// Skips turns in which nothing changes.
  void skip_steady() {
    const std::int64_t turns = std::min(turns_inside(kDx), turns_inside(kDw));
    if (turns <= 0)
      return;
    const Step follower = step(1 - leads_);
    sum_ += plan_.longer(now_.cycles, follower.read, before_.write) +
            plan_.longer(follower.cycles, now_.read, now_.write) +
            (turns - 1) * (plan_.longer(now_.cycles, follower.read, follower.write) +
                           plan_.longer(follower.cycles, now_.read, now_.write));
    for (const int product : {kDx, kDw})
      index(product, innermost_[at(product)]) += turns;
    turn_ += turns;
    before_ = follower;
    now_ = step(leads_);
  }

  /// Skips repetitions of one product's loop while the other product is inside its innermost loop.
  void skip_periods() {
    for (const int product : {kDx, kDw}) {
      std::int64_t period = 1;
      for (int level = kDims - 2; level >= 0; --level) {
        period *= parts(product, level + 1);
        if (index(product, level + 1) != 0)
          break;
        if (period > 1)
          skip_periods(product, level, period);
      }
    }
  }

  void skip_periods(int product, int level, std::int64_t period) {
    std::optional<Mark>& mark = marks_[at(product)][at(level)];
    const int other = 1 - product;
    std::int64_t& outer = index(product, level);
    std::int64_t& inner = index(other, innermost_[at(other)]);
    const std::int64_t left = parts(product, level) - 2 - outer;
    const std::int64_t inside = turns_inside(other);
    if (outer < 2 || left < 0 || inner < 2 || inside < 0) { // ends are near
      mark.reset();
      return;
    }
    const std::int64_t periods = std::min(left, inside / period);
    const bool repeats = mark && turn_ - mark->turn == period && inner - mark->other == period;
    if (!repeats || periods < 1 || !touches_alike(product, level, periods)) {
      mark = Mark{turn_, inner, sum_};
      return;
    }
    sum_ += periods * (sum_ - mark->sum);
    outer += periods;
    inner += periods * period;
    turn_ += periods * period;
    mark.reset();
  }

  /// Whether one product stays the first at a tile of dY in all iterations of a loop over the next
  /// periods.
  bool touches_alike(int product, int level, std::int64_t periods) {
    if (!is_once())
      return true;
    std::array<std::int64_t, kDims> low = places_[at(product)].index;
    std::array<std::int64_t, kDims> high = low;
    for (int inner = level + 1; inner < kDims; ++inner)
      high[at(dim(product, inner))] = parts(product, inner) - 1;
    low[at(dim(product, level))] -= 1;
    high[at(dim(product, level))] += periods;
    int before = 0;
    int after = 0;
    for (const std::int64_t m : {low[0], high[0]}) {
      for (const std::int64_t n : {low[2], high[2]}) {
        const std::int64_t lag = plan_.lag(product, m, n);
        before += lag < 0 ? 1 : 0;
        after += lag > 0 ? 1 : 0;
      }
    }
    return before == 4 || after == 4;
  }

  const Plan& plan_;
  int leads_;
  std::array<Position, 2> places_;
  std::array<int, 2> innermost_{}; ///< level of the innermost loop of several parts
  std::array<std::array<std::optional<Mark>, kDims>, 2> marks_;
  Step before_; ///< the follower's last step
  Step now_;    ///< the leader's current step
  Wide sum_ = 0;
  std::int64_t turn_ = 0;
  std::int64_t walked_ = 0;
};

Wide Plan::walked() const {
  return Walk(*this).run();
}

} // namespace monet::joint_mapping

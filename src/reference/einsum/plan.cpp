// Chooses runs and tensor places by a path search with Lagrangian bounds. The search by runs
// (mapper.cpp) calls plan_runs() in every round.
#include "reference/einsum/plan.hpp"

#include "reference/einsum/prices.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>

namespace monet::einsum {

namespace {

constexpr int kPriceSteps = 400;
constexpr std::size_t kFirstStates = 300;      // states per place in the first search
constexpr std::int64_t kMaxWork = 100'000'000; // total number of (state, run) pairs

using Words = std::vector<std::uint64_t>;

/// Runs from one place with equal requirements on the places of earlier tensors. Sets are bit sets.
struct Demand {
  Words asked; ///< tensors whose place is required
  Words held;  ///< subset in the buffer; second half: below loops
  Words used;  ///< tensors used, whose bits are part of the peak
  std::vector<std::uint32_t> runs;
};

struct State {
  std::int64_t dram = 0;
  double total = 0;             ///< lower bound of `dram` plus the rest
  std::int64_t bits = 0;        ///< of tensors that stay in the buffer
  std::int64_t stored_bits = 0; ///< of stored tensors not used by the last run
  /// Index of the bit sets of tensor places: whole in the buffer, below loops; in both: anywhere.
  std::uint32_t words = 0;
  std::uint32_t from = kNone;
  std::uint32_t begin = 0; ///< of the runs since the last place without shared loops
  Plan::Choice choice;
  bool proper = true; ///< no run with an open end so far
};

struct Stage {
  std::vector<State> states;
  Words words;
};

class Planner {
public:
  Planner(const PlanProblem& problem, std::size_t states, const SearchControl& control)
      : problem_(problem), states_(states), control_(control), prices_(problem, problem.bounds),
        width_((problem.stored.size() + 63) / 64) {
    index_demands();
    find_alive();
    for (const Run& run : problem.table.runs) {
      for (const Run::Point& point : run.points)
        step_ = std::gcd(step_, point.dram);
    }
    step_ = std::max<std::int64_t>(1, step_);
  }

  Plan run() {
    best_.dram = problem_.known;
    sift();
    search(false, kFirstStates);
    for (int half = 0; half < 2; ++half) {
      prices_.improve(upper(), kPriceSteps / 2, control_);
      sift();
      search(false, kFirstStates);
    }
    best_.bound = std::min(best_.dram, rounded_up(prices_.bound()));
    if (best_.bound < best_.dram && !control_.interrupted()) {
      sift();
      const std::int64_t proven = search(true, states_);
      best_.bound = std::min(best_.dram, std::max(best_.bound, proven));
    }
    best_.bounds = prices_.bounds(wanted());
    return std::move(best_);
  }

private:
  std::int64_t upper() const {
    return best_.dram == kMax ? 2 * rounded_up(prices_.bound()) : best_.dram;
  }
  /// Maximum DRAM bits of a better plan; DRAM bits of all plans are multiples of step_.
  double wanted() const { return static_cast<double>((best_.dram - 1) / step_ * step_); }
  /// Marks the runs that a better plan may contain.
  void sift() {
    useful_.assign(problem_.table.runs.size(), false);
    for (std::size_t r = 0; r < useful_.size(); ++r)
      useful_[r] = prices_.useful(r, wanted());
  }
  std::int64_t rounded_up(double bound) const {
    if (!(bound < 9e18))
      return kMax;
    const double safe = std::max(0.0, bound - 1e-9 * std::abs(bound) - 0.5);
    const auto whole = static_cast<std::int64_t>(std::ceil(safe));
    return (whole + step_ - 1) / step_ * step_; // DRAM bits are multiples of step_
  }

  void index_demands() {
    std::vector<std::uint32_t> index;
    for (std::uint32_t k = 0; k < problem_.stored.size(); ++k) {
      index.resize(problem_.stored[k].tensor + 1U, kNone);
      index[problem_.stored[k].tensor] = k;
    }
    demands_.resize(2 * problem_.einsums + 2);
    const std::vector<Run>& runs = problem_.table.runs;
    adds_.assign(runs.size() * 2 * width_, 0);
    for (std::uint32_t r = 0; r < runs.size(); ++r) {
      const Run& run = runs[r];
      Demand demand{Words(width_), Words(2 * width_), Words(width_), {}};
      std::vector<bool> listed(problem_.stored.size(), false);
      for (const Run::Crossing& crossing : run.crossing) {
        const std::uint32_t k = index[crossing.tensor];
        const std::uint64_t bit = std::uint64_t{1} << (k & 63U);
        const bool before = problem_.stored[k].uses.front() < run.begin;
        std::uint64_t* const places = before ? demand.held.data() : adds_.data() + r * 2 * width_;
        if (before)
          demand.asked[k >> 6U] |= bit;
        listed[k] = true;
        if (crossing.place != StorageLevel::dram)
          places[(crossing.place == StorageLevel::loops ? width_ : 0) + (k >> 6U)] |= bit;
      }
      for (std::uint32_t k = 0; k < problem_.stored.size(); ++k) {
        const Stored& stored = problem_.stored[k];
        const std::uint64_t bit = std::uint64_t{1} << (k & 63U);
        for (const std::uint32_t e : stored.uses)
          demand.used[k >> 6U] |= e >= run.begin && e < run.end ? bit : 0;
        if (run.open_begin && !listed[k] && stored.uses.front() >= run.begin &&
            stored.uses.front() < run.end && stored.uses.back() >= run.end) { // unknown place
          adds_[r * 2 * width_ + (k >> 6U)] |= bit;
          adds_[r * 2 * width_ + width_ + (k >> 6U)] |= bit;
        }
      }
      std::vector<Demand>& at = demands_[2 * run.begin + (run.open_begin ? 1U : 0U)];
      const auto same = std::ranges::find_if(at, [&](const Demand& d) {
        return d.asked == demand.asked && d.held == demand.held && d.used == demand.used;
      });
      if (same != at.end()) {
        same->runs.push_back(r);
      } else {
        demand.runs.push_back(r);
        at.push_back(std::move(demand));
      }
    }
  }

  void find_alive() {
    alive_.assign((problem_.einsums + 1) * width_, 0);
    for (std::uint32_t k = 0; k < problem_.stored.size(); ++k) {
      const Stored& stored = problem_.stored[k];
      for (std::uint32_t at = stored.uses.front() + 1; at <= stored.uses.back(); ++at)
        alive_[at * width_ + (k >> 6U)] |= std::uint64_t{1} << (k & 63U);
    }
  }

  /// Searches with at most `most` states per place and updates the best plan. Returns a lower bound
  /// of all plans: the minimum over dropped states and the best path.
  std::int64_t search(bool pieces, std::size_t most) {
    stages_.assign(2 * problem_.einsums + 2, {});
    most_ = most;
    dropped_ = static_cast<double>(kMax);
    State first;
    first.total = prices_.rest(0, false, 0);
    stages_[0].states.push_back(first);
    stages_[0].words.assign(2 * width_, 0);
    std::int64_t least = kMax;
    for (std::uint32_t at = 0; at < 2 * problem_.einsums; ++at) {
      if (control_.interrupted())
        return 0;
      settle(stages_[at], left_ > 0 ? most : std::min<std::size_t>(most, 50));
      for (const Demand& demand : demands_[at])
        expand(at, demand, pieces);
    }
    Stage& last = stages_[2 * problem_.einsums];
    for (std::uint32_t i = 0; i < last.states.size(); ++i) {
      least = std::min(least, last.states[i].dram);
      if (last.states[i].proper && last.states[i].dram < best_.dram)
        trace(i);
    }
    return std::min(least, rounded_up(std::min(dropped_, 8e18)));
  }

  void expand(std::uint32_t at, const Demand& demand, bool pieces) {
    const Stage& stage = stages_[at];
    Words next(2 * width_);
    for (std::uint32_t i = 0; i < stage.states.size(); ++i) {
      const State& state = stage.states[i];
      const std::uint64_t* const places = stage.words.data() + state.words;
      bool agrees = true;
      std::int64_t stored_bits = state.bits;
      for (std::size_t w = 0; w < width_ && agrees; ++w) {
        const std::uint64_t asked = demand.asked[w] & ~(places[w] & places[width_ + w]);
        agrees = (places[w] & asked) == (demand.held[w] & asked) &&
                 (places[width_ + w] & asked) == (demand.held[width_ + w] & asked);
        for (std::uint64_t used = places[w] & ~places[width_ + w] & demand.used[w]; used != 0;
             used &= used - 1)
          stored_bits -=
              problem_.stored[64 * w + static_cast<std::size_t>(std::countr_zero(used))].bits;
      }
      if (!agrees)
        continue;
      left_ -= static_cast<std::int64_t>(demand.runs.size());
      for (const std::uint32_t r : demand.runs) {
        const Run& run = problem_.table.runs[r];
        if (!useful_[r] || (!pieces && (run.open_begin || run.open_end)))
          continue;
        follow(at, i, r, stored_bits, next);
      }
    }
  }

  void follow(std::uint32_t at, std::uint32_t i, std::uint32_t r, std::int64_t stored_bits,
              Words& places) {
    const Run& run = problem_.table.runs[r];
    const State& state = stages_[at].states[i];
    const auto fits = std::ranges::upper_bound(run.points, problem_.buffer_bits - stored_bits, {},
                                               &Run::Point::peak);
    if (fits == run.points.begin())
      return;
    State next;
    next.dram = state.dram + std::prev(fits)->dram;
    next.begin = run.open_begin ? state.begin : run.begin;
    const double rest = prices_.rest(run.end, run.open_end, next.begin);
    const double limit = wanted();
    const std::uint64_t* const before = stages_[at].words.data() + state.words;
    const std::uint64_t* const adds = adds_.data() + r * 2 * width_;
    const std::uint64_t* const alive = alive_.data() + run.end * width_;
    next.total = static_cast<double>(next.dram) + rest;
    bool below = false;
    for (std::size_t w = 0; w < width_; ++w) {
      places[w] = (before[w] | adds[w]) & alive[w];
      places[width_ + w] = (before[width_ + w] | adds[width_ + w]) & alive[w];
      const std::uint64_t anywhere = places[w] & places[width_ + w];
      for (std::uint64_t held = places[w] & ~anywhere; held != 0; held &= held - 1) {
        const std::size_t k = 64 * w + static_cast<std::size_t>(std::countr_zero(held));
        next.bits += problem_.stored[k].bits;
        next.total += prices_.stored(k, run.end);
      }
      for (std::uint64_t left = anywhere; left != 0; left &= left - 1) {
        const std::size_t k = 64 * w + static_cast<std::size_t>(std::countr_zero(left));
        next.total += std::min({0.0, prices_.stored(k, run.end), prices_.looped(k, run.end)});
      }
      below = below || (places[width_ + w] & ~anywhere) != 0;
      for (std::uint64_t looped = places[width_ + w] & ~anywhere; looped != 0; looped &= looped - 1)
        next.total +=
            prices_.looped(64 * w + static_cast<std::size_t>(std::countr_zero(looped)), run.end);
    }
    if (next.bits > problem_.buffer_bits)
      return;
    if (!run.open_end && below)
      return; // a tensor below loops needs loops at the end
    if (next.total > limit + 1e-9 * std::abs(next.total) + 0.5)
      return;
    Stage& to = stages_[2 * run.end + (run.open_end ? 1U : 0U)];
    next.words = static_cast<std::uint32_t>(to.words.size());
    next.from = i;
    next.stored_bits = stored_bits;
    next.choice = {r, static_cast<std::uint32_t>(fits - run.points.begin() - 1)};
    next.proper = state.proper && !run.open_begin && !run.open_end;
    to.words.insert(to.words.end(), places.begin(), places.end());
    to.states.push_back(next);
    if (to.states.size() >= 4 * most_ + 1000)
      settle(to, most_);
  }

  /// Keeps the most promising state per combination of tensor places, and at most `most` states.
  void settle(Stage& stage, std::size_t most) {
    const auto places = [&](const State& state) { return stage.words.data() + state.words; };
    std::ranges::sort(stage.states, [&](const State& a, const State& b) {
      const auto order = std::lexicographical_compare_three_way(places(a), places(a) + 2 * width_,
                                                                places(b), places(b) + 2 * width_);
      if (order != 0)
        return order < 0;
      if (a.dram != b.dram)
        return a.dram < b.dram;
      if (a.proper != b.proper)
        return a.proper;
      return std::pair(a.from, a.choice.run) < std::pair(b.from, b.choice.run);
    });
    const auto same = [&](const State& a, const State& b) {
      return std::equal(places(a), places(a) + 2 * width_, places(b));
    };
    stage.states.erase(std::unique(stage.states.begin(), stage.states.end(), same),
                       stage.states.end());
    std::ranges::stable_sort(stage.states, {}, &State::total);
    if (stage.states.size() > most) {
      dropped_ = std::min(dropped_, stage.states[most].total);
      stage.states.resize(most);
    }
    Words words;
    words.reserve(stage.states.size() * 2 * width_);
    for (State& state : stage.states) {
      const auto at = static_cast<std::uint32_t>(words.size());
      words.insert(words.end(), places(state), places(state) + 2 * width_);
      state.words = at;
    }
    stage.words = std::move(words);
  }

  void trace(std::uint32_t state) {
    best_.dram = stages_[2 * problem_.einsums].states[state].dram;
    best_.runs.clear();
    best_.peak = 0;
    std::uint32_t at = 2 * problem_.einsums;
    while (at != 0) {
      const State& here = stages_[at].states[state];
      const Run& run = problem_.table.runs[here.choice.run];
      best_.runs.push_back(here.choice);
      best_.peak = std::max(best_.peak, run.points[here.choice.point].peak + here.stored_bits);
      state = here.from;
      at = 2 * run.begin + (run.open_begin ? 1U : 0U);
    }
    std::ranges::reverse(best_.runs);
  }

  const PlanProblem& problem_;
  std::size_t states_;
  const SearchControl& control_;
  Prices prices_;
  std::size_t width_;
  std::int64_t left_ = kMaxWork;
  std::int64_t step_ = 0;
  std::vector<std::vector<Demand>> demands_; ///< by 2 * place + open
  Words adds_;                               ///< by run: places of the tensors that it makes
  Words alive_;                              ///< by place
  std::vector<Stage> stages_;
  std::vector<bool> useful_; ///< by run
  double dropped_ = 0;
  std::size_t most_ = 0; ///< maximum number of states per place
  Plan best_;
};

} // namespace

Plan plan_runs(const PlanProblem& problem, std::size_t states, const SearchControl& control) {
  return Planner(problem, states, control).run();
}

} // namespace monet::einsum

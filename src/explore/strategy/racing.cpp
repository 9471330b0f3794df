// The racing strategy: computes lower bounds of all designs and evaluates only designs that may be
// on a front. A design is skipped when results dominate its lower bounds on every front. Bounds
// rise during an evaluation, so most evaluations are given up before their end.
// docs/explanation/exploration.md proves that the fronts are those of all designs.
#include "base/shared/parallel.hpp"
#include "explore/strategy/design_fronts.hpp"
#include "explore/strategy/main_effects.hpp"
#include "explore/strategy/shuffled.hpp"
#include "explore/strategy/strategies.hpp"

#include "monet/base/errors.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <numeric>

namespace monet {

namespace {

constexpr std::size_t kRaceBatch = 32;
constexpr std::size_t kBoundBatch = 4096;        ///< designs bounded per call of ask()
constexpr std::size_t kSample = 64;              ///< random designs for the first estimates
constexpr std::uint64_t kMaxDesigns = 2'000'000; ///< the bounds of all are kept in memory

class Racing : public Strategy {
public:
  Racing(DesignSet designs, DesignEvaluator& evaluator, const StrategyOptions& options)
      : designs_(std::move(designs)), evaluator_(evaluator), options_(options) {
    internal_check(!designs_.fronts.empty(), "racing without a front to look for");
    if (designs_.size() > kMaxDesigns)
      throw InfeasibleError(fmt::format("the space has {} designs, and racing computes the bounds "
                                        "of at most {}: use nsga2, random or lhs with a budget",
                                        designs_.size(), kMaxDesigns));
    for (const FrontRequest& front : designs_.fronts) {
      fronts_.fronts.push_back({front, {}});
      offset_.push_back(width_);
      width_ += front.objectives.size();
    }
    logs_.resize(width_);
  }

  std::vector<DesignId> ask() override {
    batch_.clear();
    race_ = {};
    ended_ = false;
    if (bounded_ < designs_.size()) {
      bound_some();
      return batch_;
    }
    const std::uint64_t left =
        options_.budget == 0 ? kSample : options_.budget - std::min(options_.budget, asked_);
    const bool sample = !sampled_ && ids_.size() >= 8 * kSample;
    sampled_ = true;
    if (sample) {
      draw_sample(std::min<std::uint64_t>(kSample, left));
    } else if (survivors_.empty()) {
      line_up(left);
    } else {
      survivors_.resize(std::min<std::uint64_t>(left, survivors_.size()));
      batch_.swap(survivors_);
    }
    asked_ += batch_.size();
    return batch_;
  }

  bool ended() const override { return ended_; }
  DesignRace race() const override { return race_; }

  void tell_race(std::span<const DesignResult> results) override {
    for (const DesignResult& result : results) {
      if (result.given_up() || fronts_.beat(result))
        ++skipped_;
      else
        survivors_.push_back(result.id);
    }
  }

  void tell(std::span<const DesignResult> results) override {
    internal_check(results.size() == batch_.size(), "results of other designs than asked for");
    for (const DesignResult& result : results) {
      if (!result.feasible)
        continue;
      choices_.push_back(designs_.choices(result.id));
      for (std::size_t f = 0; f < designs_.fronts.size(); ++f) {
        const std::vector<double> values = objective_values(result, designs_.fronts[f]);
        fronts_.fronts[f].points.add(values);
        for (std::size_t k = 0; k < values.size(); ++k)
          logs_[offset_[f] + k].push_back(logarithm(values[k]));
      }
    }
    if (choices_.size() >= next_fit_) {
      next_fit_ = 2 * choices_.size();
      put_in_order();
    }
  }

  std::uint64_t skipped_by_bound() const override { return skipped_; }
  std::uint64_t excluded() const override { return excluded_; }

private:
  static double logarithm(double value) { return std::log(std::max(value, 1e-300)); }

  std::span<double> bounds_of(std::size_t candidate, std::size_t front) {
    return std::span(bounds_).subspan(candidate * width_ + offset_[front],
                                      designs_.fronts[front].objectives.size());
  }

  /// Computes the bounds of the next designs that satisfy the constraints.
  void bound_some() {
    const std::size_t before = ids_.size();
    for (; bounded_ < designs_.size() && ids_.size() - before < kBoundBatch; ++bounded_) {
      if (designs_.keeps(bounded_))
        ids_.push_back(bounded_);
    }
    excluded_ = bounded_ - ids_.size();
    done_.resize(ids_.size(), 0);
    bounds_.resize(ids_.size() * width_);
    parallel_for(ids_.size() - before, options_.jobs, [&](std::size_t n) {
      const std::size_t i = before + n;
      const DesignBound bound = evaluator_.bound(ids_[i]);
      done_[i] = bound.feasible ? 0 : 1;
      for (std::size_t f = 0; f < designs_.fronts.size() && bound.feasible; ++f) {
        const std::vector<double> values = objective_values(bound, designs_.fronts[f]);
        std::copy(values.begin(), values.end(), bounds_of(i, f).begin());
      }
    });
    const auto from = done_.begin() + static_cast<std::ptrdiff_t>(before);
    skipped_ += static_cast<std::uint64_t>(std::count(from, done_.end(), 1));
    if (bounded_ == designs_.size())
      put_in_order();
  }

  void draw_sample(std::uint64_t count) {
    const Shuffled order(ids_.size(), options_.seed);
    for (std::uint64_t i = 0; i < ids_.size() && batch_.size() < count; ++i) {
      const auto candidate = static_cast<std::size_t>(order[i]);
      if (done_[candidate] != 0)
        continue;
      done_[candidate] = 1;
      batch_.push_back(ids_[candidate]);
    }
  }

  /// Fills the next race: candidates to be evaluated as long as they may be on a front. Which
  /// designs race together does not depend on the budget.
  void line_up(std::uint64_t left) {
    while (left > 0 && race_.ids.size() < kRaceBatch) {
      const std::size_t candidate = pop();
      if (candidate == ids_.size())
        break;
      race_.ids.push_back(ids_[candidate]);
    }
    race_.fronts = std::make_shared<KnownFronts>(fronts_);
    ended_ = race_.ids.empty();
  }

  /// Whether a candidate is new and some front does not dominate its bounds. A dominated one is
  /// counted as skipped.
  bool still_open(std::size_t candidate) {
    if (done_[candidate] != 0)
      return false;
    for (std::size_t f = 0; f < designs_.fronts.size(); ++f)
      if (!fronts_.fronts[f].points.dominates(bounds_of(candidate, f)))
        return true;
    done_[candidate] = 1;
    ++skipped_;
    return false;
  }

  /// Estimated logarithms of the candidates' figures, per front and objective. They are fitted to
  /// the results, and at least the bounds, which are exact for area and power.
  std::vector<double> guesses(const std::vector<std::size_t>& candidates) {
    std::vector<MainEffects> effects(width_, MainEffects(designs_.values));
    for (std::size_t k = 0; k < width_; ++k)
      effects[k].fit(choices_, logs_[k]);
    std::vector<double> found(candidates.size() * width_);
    for (std::size_t i = 0; i < candidates.size(); ++i) {
      const std::vector<std::uint32_t> choices = designs_.choices(ids_[candidates[i]]);
      for (std::size_t f = 0; f < designs_.fronts.size(); ++f) {
        const std::vector<Objective>& objectives = designs_.fronts[f].objectives;
        for (std::size_t k = 0; k < objectives.size(); ++k) {
          const double bound = logarithm(bounds_of(candidates[i], f)[k]);
          const bool exact = objectives[k] == Objective::area || objectives[k] == Objective::power;
          const double guess = effects[offset_[f] + k].at(choices);
          found[i * width_ + offset_[f] + k] =
              exact || choices_.empty() ? bound : std::max(bound, guess);
        }
      }
    }
    return found;
  }

  /// Builds one list of candidates per front and subset of its objectives, sorted by the product of
  /// their estimates. Thus the ends and the middle of each front are evaluated first.
  void put_in_order() {
    std::vector<std::size_t> left;
    for (std::size_t i = 0; i < ids_.size(); ++i)
      if (done_[i] == 0)
        left.push_back(i);
    const std::vector<double> guess = guesses(left);
    lists_.clear();
    std::vector<double> key(left.size());
    std::vector<std::uint32_t> order(left.size());
    for (std::size_t f = 0; f < designs_.fronts.size(); ++f) {
      const std::size_t objectives = designs_.fronts[f].objectives.size();
      for (std::size_t set = 1; set < std::size_t{1} << objectives; ++set) {
        for (std::size_t i = 0; i < left.size(); ++i) {
          key[i] = 0;
          for (std::size_t k = 0; k < objectives; ++k)
            key[i] += (set >> k & 1U) != 0 ? guess[i * width_ + offset_[f] + k] : 0;
        }
        std::iota(order.begin(), order.end(), 0U);
        std::ranges::stable_sort(order,
                                 [&](std::uint32_t a, std::uint32_t b) { return key[a] < key[b]; });
        std::vector<std::uint32_t>& list = lists_.emplace_back();
        for (const std::uint32_t i : order)
          list.push_back(static_cast<std::uint32_t>(left[i]));
      }
    }
    next_.assign(lists_.size(), 0);
    turn_ = 0;
  }

  /// The most promising candidate of the next list; ids_.size() if no candidate is left.
  std::size_t pop() {
    for (std::size_t tried = 0; tried < lists_.size(); ++tried) {
      const std::size_t list = turn_;
      turn_ = (turn_ + 1) % lists_.size();
      while (next_[list] < lists_[list].size()) {
        const std::size_t candidate = lists_[list][next_[list]++];
        if (!still_open(candidate))
          continue;
        done_[candidate] = 1;
        return candidate;
      }
    }
    return ids_.size();
  }

  DesignSet designs_;
  DesignEvaluator& evaluator_;
  StrategyOptions options_;
  KnownFronts fronts_;              ///< of all results
  std::size_t width_ = 0;           ///< numbers per design in bounds_
  std::vector<std::size_t> offset_; ///< of each front in a design's bounds
  std::vector<DesignId> ids_;
  std::vector<char> done_; ///< asked for, or skipped
  std::vector<double> bounds_;
  std::vector<std::vector<std::uint32_t>> choices_; ///< of feasible results
  std::vector<std::vector<double>> logs_;           ///< [number][result]
  std::size_t next_fit_ = kSample / 2;              ///< number of results for the next fit
  std::vector<std::vector<std::uint32_t>> lists_;   ///< candidates, most promising first
  std::vector<std::size_t> next_;
  std::size_t turn_ = 0;
  std::vector<DesignId> batch_;
  DesignRace race_;
  std::vector<DesignId> survivors_; ///< of the last race
  DesignId bounded_ = 0;            ///< lower ids have a bound
  bool sampled_ = false;
  bool ended_ = false;
  std::uint64_t asked_ = 0, skipped_ = 0, excluded_ = 0;
};

} // namespace

std::unique_ptr<Strategy> racing_strategy(DesignSet designs, DesignEvaluator& evaluator,
                                          const StrategyOptions& options) {
  return std::make_unique<Racing>(std::move(designs), evaluator, options);
}

} // namespace monet

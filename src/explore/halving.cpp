// Lower bounds of every design, and evaluations of those only that may be on a front. Each batch
// raises the bar; what a result beats even at its lower bounds goes. docs/exploration.md has the
// proof that the fronts are those of all designs.
#include "explore/design_fronts.hpp"
#include "explore/strategies.hpp"

#include "monet/base/errors.hpp"
#include "monet/base/parallel.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace monet {

namespace {

constexpr std::size_t kBatch = 64;
constexpr std::uint64_t kMostDesigns = 4'000'000; ///< bounds are kept of all

class Halving : public Strategy {
public:
  Halving(DesignSet designs, DesignEvaluator& evaluator, const StrategyOptions& options)
      : designs_(std::move(designs)), evaluator_(evaluator), options_(options),
        fronts_(designs_.fronts.size()) {
    internal_check(!fronts_.empty(), "halving without a front to look for");
    if (designs_.size() > kMostDesigns)
      throw InfeasibleError(fmt::format("the space has {} designs, and halving looks at the bounds "
                                        "of {} at most: take nsga2, random or lhs with a budget",
                                        designs_.size(), kMostDesigns));
    for (const FrontRequest& front : designs_.fronts) {
      offset_.push_back(width_);
      width_ += front.objectives.size();
    }
  }

  std::vector<DesignId> ask() override {
    if (stage_ == 0)
      bound_all();
    else if (stage_ == 1)
      bound_survivors();
    const std::uint64_t left =
        options_.budget == 0 ? kBatch : options_.budget - std::min(options_.budget, asked_);
    batch_.clear();
    while (batch_.size() < std::min<std::uint64_t>(kBatch, left)) {
      const std::size_t candidate = pop();
      if (candidate == ids_.size())
        break;
      batch_.push_back(ids_[candidate]);
    }
    asked_ += batch_.size();
    return batch_;
  }

  void tell(std::span<const DesignResult> results) override {
    internal_check(results.size() == batch_.size(), "results of other designs than asked for");
    for (const DesignResult& result : results)
      for (std::size_t f = 0; f < fronts_.size() && result.feasible; ++f)
        fronts_[f].add(objective_values(result, designs_.fronts[f]));
  }

  std::uint64_t skipped_by_bound() const override { return skipped_; }
  std::uint64_t excluded() const override { return excluded_; }

private:
  std::span<double> bounds_of(std::size_t candidate, std::size_t front) {
    return std::span(bounds_).subspan(candidate * width_ + offset_[front],
                                      designs_.fronts[front].objectives.size());
  }

  /// Keeps what is larger of the bounds known and these.
  void raise(std::size_t candidate, const DesignBound& bound) {
    if (!bound.feasible) {
      state_[candidate] = State::gone;
      return;
    }
    for (std::size_t f = 0; f < fronts_.size(); ++f) {
      const std::vector<double> values = objective_values(bound, designs_.fronts[f]);
      const std::span<double> known = bounds_of(candidate, f);
      for (std::size_t k = 0; k < values.size(); ++k)
        known[k] = std::max(known[k], values[k]);
    }
  }

  /// Quick bounds of all designs.
  void bound_all() {
    for (DesignId id = 0; id < designs_.size(); ++id)
      if (designs_.keeps(id))
        ids_.push_back(id);
    excluded_ = designs_.size() - ids_.size();
    state_.assign(ids_.size(), State::open);
    bounds_.assign(ids_.size() * width_, -std::numeric_limits<double>::infinity());
    parallel_for(ids_.size(), options_.jobs,
                 [&](std::size_t i) { raise(i, evaluator_.quick_bound(ids_[i])); });
    count_gone();
    put_in_order();
    stage_ = 1;
  }

  /// Dearer bounds of what the first results leave.
  void bound_survivors() {
    std::vector<std::size_t> left;
    for (std::size_t i = 0; i < ids_.size(); ++i)
      if (still_open(i))
        left.push_back(i);
    parallel_for(left.size(), options_.jobs,
                 [&](std::size_t i) { raise(left[i], evaluator_.bound(ids_[left[i]])); });
    count_gone();
    put_in_order();
    stage_ = 2;
  }

  void count_gone() {
    for (State& state : state_)
      if (state == State::gone) {
        state = State::done;
        ++skipped_;
      }
  }

  /// Not asked for, and on no front for certain; else it is counted as skipped, once.
  bool still_open(std::size_t candidate) {
    if (state_[candidate] != State::open)
      return false;
    for (std::size_t f = 0; f < fronts_.size(); ++f)
      if (!fronts_[f].dominates(bounds_of(candidate, f)))
        return true;
    state_[candidate] = State::done;
    ++skipped_;
    return false;
  }

  /// One list per front and set of its objectives: by the sum of the logarithms of the bounds in
  /// these, so that the ends of the front and its middle come first.
  void put_in_order() {
    lists_.clear();
    next_.clear();
    std::vector<std::size_t> left;
    for (std::size_t i = 0; i < ids_.size(); ++i)
      if (state_[i] == State::open)
        left.push_back(i);
    std::vector<double> key(ids_.size());
    for (std::size_t f = 0; f < fronts_.size(); ++f) {
      const std::size_t objectives = designs_.fronts[f].objectives.size();
      for (std::size_t set = 1; set < std::size_t{1} << objectives; ++set) {
        for (const std::size_t i : left) {
          key[i] = 0;
          for (std::size_t k = 0; k < objectives; ++k)
            if ((set >> k & 1U) != 0)
              key[i] += std::log(std::max(bounds_of(i, f)[k], 1e-300));
        }
        lists_.emplace_back(left.begin(), left.end());
        std::stable_sort(lists_.back().begin(), lists_.back().end(),
                         [&](std::uint32_t a, std::uint32_t b) { return key[a] < key[b]; });
        next_.push_back(0);
      }
    }
    turn_ = 0;
  }

  /// The most promising candidate of the next list; ids_.size() when none is left.
  std::size_t pop() {
    for (std::size_t tried = 0; tried < lists_.size(); ++tried) {
      const std::size_t list = turn_;
      turn_ = (turn_ + 1) % lists_.size();
      while (next_[list] < lists_[list].size()) {
        const std::size_t candidate = lists_[list][next_[list]++];
        if (!still_open(candidate))
          continue;
        state_[candidate] = State::done;
        return candidate;
      }
    }
    return ids_.size();
  }

  enum class State : std::uint8_t { open, gone, done };

  DesignSet designs_;
  DesignEvaluator& evaluator_;
  StrategyOptions options_;
  std::vector<FrontPoints> fronts_; ///< of everything told
  std::size_t width_ = 0;           ///< numbers per design in bounds_
  std::vector<std::size_t> offset_; ///< of each front in them
  std::vector<DesignId> ids_;
  std::vector<State> state_; ///< gone: its bound says infeasible, not counted yet
  std::vector<double> bounds_;
  std::vector<std::vector<std::uint32_t>> lists_; ///< candidates, most promising first
  std::vector<std::size_t> next_;
  std::size_t turn_ = 0;
  std::vector<DesignId> batch_;
  int stage_ = 0;
  std::uint64_t asked_ = 0, skipped_ = 0, excluded_ = 0;
};

} // namespace

std::unique_ptr<Strategy> halving_strategy(DesignSet designs, DesignEvaluator& evaluator,
                                           const StrategyOptions& options) {
  return std::make_unique<Halving>(std::move(designs), evaluator, options);
}

} // namespace monet

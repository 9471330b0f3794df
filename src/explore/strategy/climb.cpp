// Hill climbing: evaluates the neighbours of the best design so far, for every objective. The
// exploration loop (explore.cpp) drives this strategy.
#include "explore/strategy/strategies.hpp"

#include <algorithm>
#include <limits>
#include <optional>
#include <set>
#include <utility>

namespace monet {

namespace {

constexpr DesignId kMaxExcludedDesigns = 1'000'000; ///< tried for a first design

/// Objective value (infinite if infeasible), then design id, so that ties are deterministic.
using Merit = std::pair<double, DesignId>;

class Climb : public Strategy {
public:
  Climb(DesignSet designs, const StrategyOptions& options)
      : designs_(std::move(designs)), size_(designs_.size()), budget_(options.budget) {
    for (const FrontRequest& front : designs_.fronts) {
      for (const Objective objective : front.objectives) {
        const FrontRequest target{front.run, {objective}};
        if (std::ranges::find(targets_, target) == targets_.end())
          targets_.push_back(target);
      }
    }
    best_.resize(targets_.size());
  }

  std::vector<DesignId> ask() override {
    if (budget_ > 0 && known_.size() >= budget_)
      return {};
    if (known_.empty())
      return first();
    for (const std::optional<Merit>& best : best_) {
      std::vector<DesignId> near = neighbours(best->second);
      if (budget_ > 0 && near.size() > budget_ - known_.size())
        near.resize(budget_ - known_.size());
      if (!near.empty())
        return near;
    }
    return {};
  }

  void tell(std::span<const DesignResult> results) override {
    for (const DesignResult& result : results) {
      known_.insert(result.id);
      for (std::size_t t = 0; t < targets_.size(); ++t) {
        const double value = result.feasible ? objective_values(result, targets_[t]).front()
                                             : std::numeric_limits<double>::infinity();
        best_[t] = std::min(best_[t].value_or(Merit{value, result.id}), Merit{value, result.id});
      }
    }
  }

  std::uint64_t excluded() const override { return excluded_.size(); }
  std::string ended_early() const override {
    return budget_ > known_.size() ? "no neighbour of the best design of any objective is better"
                                   : "";
  }

private:
  std::vector<DesignId> first() {
    for (DesignId id = 0; id < std::min(size_, kMaxExcludedDesigns); ++id) {
      if (keeps(id))
        return {id};
    }
    return {};
  }

  /// Unknown neighbours of a design: one parameter moves to its previous or next value.
  std::vector<DesignId> neighbours(DesignId id) {
    std::vector<DesignId> near;
    std::vector<std::uint32_t> choices = designs_.choices(id);
    for (std::size_t p = 0; p < choices.size(); ++p) {
      const std::uint32_t own = choices[p];
      const auto add = [&](std::uint32_t other) {
        choices[p] = other;
        const DesignId one = designs_.id_of(choices);
        if (!known_.contains(one) && keeps(one))
          near.push_back(one);
      };
      if (own > 0)
        add(own - 1);
      if (own + 1 < designs_.values[p])
        add(own + 1);
      choices[p] = own;
    }
    return near;
  }

  bool keeps(DesignId id) {
    if (designs_.keeps(id))
      return true;
    excluded_.insert(id);
    return false;
  }

  DesignSet designs_;
  std::uint64_t size_, budget_;
  std::vector<FrontRequest> targets_;      ///< one objective each
  std::vector<std::optional<Merit>> best_; ///< per target
  std::set<DesignId> known_, excluded_;
};

} // namespace

std::unique_ptr<Strategy> climbing_strategy(DesignSet designs, const StrategyOptions& options) {
  return std::make_unique<Climb>(std::move(designs), options);
}

} // namespace monet

// Code shared by the evaluators of chips (evaluator.cpp) and of clusters (cluster_evaluator.cpp).
#pragma once

#include "monet/core_cost/core_cost.hpp"
#include "monet/explore/space.hpp"
#include "monet/hardware/chip.hpp"

#include <memory>
#include <mutex>
#include <string>

namespace monet {

/// Sets the area and power of `count` chips in `result`. Returns the reason why they exceed the
/// budgets; empty if they do not. Off-chip bandwidth is checked for one chip.
std::string judge_chips(const Chip& chip, double count, const DesignBudgets& budgets,
                        DesignResult& result);

/// Core costs shared by all designs of a space; replaced by an empty cache when it grows too large.
/// Costs do not depend on the order of requests, so results do not depend on the cache's contents.
class SharedCosts {
public:
  std::shared_ptr<CoreCostCache> get() {
    constexpr std::size_t kMaxCosts = 100'000; // about 4 KB each
    const std::lock_guard lock(mutex_);
    if (!costs_ || costs_->solved() > kMaxCosts)
      costs_ = std::make_shared<CoreCostCache>();
    return costs_;
  }

private:
  std::mutex mutex_;
  std::shared_ptr<CoreCostCache> costs_;
};

/// The evaluator of a space of clusters; see make_evaluator().
std::unique_ptr<DesignEvaluator> cluster_evaluator(const Space& space);

} // namespace monet

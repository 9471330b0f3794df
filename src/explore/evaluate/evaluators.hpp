// What the evaluators of chips and of clusters share.
#pragma once

#include "monet/core_cost/core_cost.hpp"
#include "monet/explore/evaluator.hpp"
#include "monet/hardware/chip.hpp"

#include <memory>
#include <mutex>
#include <string>

namespace monet {

/// Gives the result area and power of so many chips; the reason why the budgets exclude them, or
/// nothing. Off-chip bandwidth is that of one.
std::string judge_chips(const Chip& chip, double count, const DesignBudgets& budgets,
                        DesignResult& result);

/// Core costs that all designs of a space share, started anew when there are many. Costs are the
/// same whoever asks first, so that results do not depend on what is still there.
class SharedCosts {
public:
  std::shared_ptr<CoreCostCache> get() {
    constexpr std::size_t kMaxCosts = 100'000; // kept at once, of about 4 KB each
    const std::lock_guard lock(mutex_);
    if (!costs_ || costs_->solved() > kMaxCosts)
      costs_ = std::make_shared<CoreCostCache>();
    return costs_;
  }

private:
  std::mutex mutex_;
  std::shared_ptr<CoreCostCache> costs_;
};

/// As make_evaluator() has it, of a space of clusters.
std::unique_ptr<DesignEvaluator> cluster_evaluator(const Space& space);

} // namespace monet

// Core costs that all designs of a space share.
#pragma once

#include "monet/core_cost/core_cost.hpp"

#include <cstddef>
#include <memory>
#include <mutex>

namespace monet {

/// Started anew when there are many. Costs are the same whoever asks first, so that results do not
/// depend on what is still there.
class SharedCosts {
public:
  std::shared_ptr<CoreCostCache> get() {
    constexpr std::size_t kMostCosts = 100'000; // kept at once, of about 4 KB each
    const std::lock_guard lock(mutex_);
    if (!costs_ || costs_->solved() > kMostCosts)
      costs_ = std::make_shared<CoreCostCache>();
    return costs_;
  }

private:
  std::mutex mutex_;
  std::shared_ptr<CoreCostCache> costs_;
};

} // namespace monet

// Every design that constraints keep.
#include "explore/strategies.hpp"

#include "monet/base/errors.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace monet {

namespace {

constexpr std::size_t kBatch = 4096;
constexpr std::uint64_t kMostDesigns = 1'000'000'000; ///< to go through without a budget
constexpr std::uint64_t kMostExcluded = 100'000'000;  ///< one after another

class Exhaustive : public Strategy {
public:
  Exhaustive(DesignSet designs, const StrategyOptions& options)
      : designs_(std::move(designs)), size_(designs_.size()), budget_(options.budget) {
    if (budget_ == 0 && size_ > kMostDesigns)
      throw InfeasibleError(fmt::format("the space has {} designs, and exhaustive goes through {} "
                                        "at most: give a budget, or take another strategy",
                                        size_, kMostDesigns));
  }

  std::vector<DesignId> ask() override {
    std::vector<DesignId> batch;
    std::uint64_t in_a_row = 0;
    while (next_ < size_ && batch.size() < kBatch && (budget_ == 0 || asked_ < budget_)) {
      if (designs_.keeps(next_)) {
        batch.push_back(next_);
        ++asked_;
        in_a_row = 0;
      } else {
        ++excluded_;
        if (++in_a_row == kMostExcluded) {
          ended_early_ = fmt::format("constraints exclude {} designs one after another up to "
                                     "number {}: it went no further",
                                     kMostExcluded, next_);
          size_ = next_;
          break;
        }
      }
      ++next_;
    }
    return batch;
  }
  void tell(std::span<const DesignResult>) override {}
  std::uint64_t excluded() const override { return excluded_; }
  std::string ended_early() const override {
    return ended_early_.empty() && budget_ > asked_
               ? "the space has no more designs that its constraints keep"
               : ended_early_;
  }

private:
  DesignSet designs_;
  std::uint64_t size_, budget_;
  DesignId next_ = 0;
  std::uint64_t asked_ = 0, excluded_ = 0;
  std::string ended_early_;
};

} // namespace

std::unique_ptr<Strategy> exhaustive_strategy(DesignSet designs, const StrategyOptions& options) {
  return std::make_unique<Exhaustive>(std::move(designs), options);
}

} // namespace monet

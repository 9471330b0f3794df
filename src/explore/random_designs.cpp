// Designs drawn at random, none twice.
#include "explore/shuffled.hpp"
#include "explore/strategies.hpp"

#include "monet/base/errors.hpp"

#include <fmt/format.h>

namespace monet {

namespace {

constexpr std::size_t kBatch = 1024;
constexpr std::uint64_t kMostExcluded = 1'000'000; ///< one after another

class RandomDesigns : public Strategy {
public:
  RandomDesigns(DesignSet designs, const StrategyOptions& options)
      : designs_(std::move(designs)), size_(designs_.size()), budget_(options.budget),
        order_(size_, options.seed) {
    if (budget_ == 0)
      throw InfeasibleError("random needs a budget: how many designs to draw");
  }

  std::vector<DesignId> ask() override {
    std::vector<DesignId> batch;
    std::uint64_t in_a_row = 0;
    while (place_ < size_ && batch.size() < kBatch && asked_ < budget_ && ended_early_.empty()) {
      const DesignId id = order_[place_++];
      if (designs_.keeps(id)) {
        batch.push_back(id);
        ++asked_;
        in_a_row = 0;
      } else {
        ++excluded_;
        if (++in_a_row == kMostExcluded)
          ended_early_ =
              fmt::format("constraints excluded {} designs drawn one after another", in_a_row);
      }
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
  Shuffled order_;
  std::uint64_t place_ = 0, asked_ = 0, excluded_ = 0;
  std::string ended_early_;
};

} // namespace

std::unique_ptr<Strategy> random_strategy(DesignSet designs, const StrategyOptions& options) {
  return std::make_unique<RandomDesigns>(std::move(designs), options);
}

} // namespace monet

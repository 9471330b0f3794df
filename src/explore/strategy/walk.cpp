// The exhaustive and random strategies: all designs that satisfy the constraints, in order of their
// ids or in random order. The exploration loop (explore.cpp) drives them.
#include "explore/strategy/shuffled.hpp"
#include "explore/strategy/strategies.hpp"

#include "monet/base/errors.hpp"

#include <fmt/core.h>

namespace monet {

namespace {

constexpr std::uint64_t kMaxUnbudgetedDesigns = 1'000'000'000; ///< maximum without a budget

/// The order of designs and the limits of a walk.
struct Order {
  std::function<DesignId(std::uint64_t place)> at;
  std::size_t batch = 0;
  std::uint64_t max_excluded = 0; ///< maximum number of consecutive excluded designs
  std::string too_many;           ///< message if exceeded: format of the count and last design
};

class Walk : public Strategy {
public:
  Walk(DesignSet designs, const StrategyOptions& options, Order order)
      : designs_(std::move(designs)), size_(designs_.size()), budget_(options.budget),
        order_(std::move(order)) {}

  std::vector<DesignId> ask() override {
    std::vector<DesignId> batch;
    std::uint64_t in_a_row = 0;
    while (place_ < size_ && batch.size() < order_.batch && ended_early_.empty() &&
           (budget_ == 0 || asked_ < budget_)) {
      const DesignId id = order_.at(place_++);
      if (designs_.keeps(id)) {
        batch.push_back(id);
        ++asked_;
        in_a_row = 0;
      } else {
        ++excluded_;
        if (++in_a_row == order_.max_excluded)
          ended_early_ = fmt::format(fmt::runtime(order_.too_many), in_a_row, id);
      }
    }
    return batch;
  }
  void tell(std::span<const DesignResult>) override {}
  std::uint64_t excluded() const override { return excluded_; }
  std::string ended_early() const override {
    return ended_early_.empty() && budget_ > asked_
               ? "the space has no more designs that satisfy its constraints"
               : ended_early_;
  }

private:
  DesignSet designs_;
  std::uint64_t size_, budget_;
  Order order_;
  std::uint64_t place_ = 0, asked_ = 0, excluded_ = 0;
  std::string ended_early_;
};

} // namespace

std::unique_ptr<Strategy> exhaustive_strategy(DesignSet designs, const StrategyOptions& options) {
  const std::uint64_t size = designs.size();
  if (options.budget == 0 && size > kMaxUnbudgetedDesigns)
    throw InfeasibleError(fmt::format("the space has {} designs, and exhaustive evaluates at most "
                                      "{}: set a budget or use another strategy",
                                      size, kMaxUnbudgetedDesigns));
  return std::make_unique<Walk>(
      std::move(designs), options,
      Order{[](std::uint64_t place) { return place; }, 4096, 100'000'000,
            "constraints exclude {} designs in a row up to number {}: the search stopped"});
}

std::unique_ptr<Strategy> random_strategy(DesignSet designs, const StrategyOptions& options) {
  if (options.budget == 0)
    throw InfeasibleError("random requires a budget: the number of designs to draw");
  const Shuffled order(designs.size(), options.seed);
  return std::make_unique<Walk>(std::move(designs), options,
                                Order{[order](std::uint64_t place) { return order[place]; }, 1024,
                                      1'000'000,
                                      "constraints excluded {} designs drawn one after another"});
}

} // namespace monet

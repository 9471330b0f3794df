// Latin hypercube sampling (McKay, Beckman, Conover 1979) over discrete values: every value of a
// parameter occurs equally often among the samples. The exploration loop (explore.cpp) drives it.
#include "explore/strategy/design_repair.hpp"
#include "explore/strategy/strategies.hpp"

#include "monet/base/errors.hpp"

#include <algorithm>
#include <utility>

namespace monet {

namespace {

constexpr std::size_t kHypercubeBatch = 1024;
constexpr int kSwaps = 64; ///< tries to repair a sample by swapping values

class LatinHypercube : public Strategy {
public:
  LatinHypercube(DesignSet designs, const StrategyOptions& options)
      : open_(std::move(designs)), budget_(options.budget), random_(options.seed, 0x1A71) {
    if (budget_ == 0)
      throw InfeasibleError("lhs requires a budget: the number of designs to draw");
    samples_ = static_cast<std::size_t>(std::min(budget_, open_.size()));
    if (samples_ > kMaxSamples)
      throw InfeasibleError("lhs draws 10,000,000 designs at most: use a smaller budget");
  }

  std::vector<DesignId> ask() override {
    if (!drawn_)
      draw();
    const std::size_t count = std::min(kHypercubeBatch, ids_.size() - next_);
    const auto first = ids_.begin() + static_cast<std::ptrdiff_t>(next_);
    next_ += count;
    return {first, first + static_cast<std::ptrdiff_t>(count)};
  }
  void tell(std::span<const DesignResult>) override {}
  std::uint64_t excluded() const override { return open_.excluded(); }
  std::string ended_early() const override {
    return drawn_ && ids_.size() < budget_
               ? "no more designs that satisfy the constraints were found for the remaining samples"
               : "";
  }

private:
  static constexpr std::size_t kMaxSamples = 10'000'000;

  /// Divides each parameter's values into one stratum per sample and assigns them at random.
  void stratify() {
    const std::size_t parameters = open_.designs().values.size();
    samples_of_.assign(parameters, {});
    for (std::size_t p = 0; p < parameters; ++p) {
      std::vector<std::uint32_t>& column = samples_of_[p];
      const std::uint64_t values = open_.designs().values[p];
      for (std::size_t s = 0; s < samples_; ++s) {
        const double at = (static_cast<double>(s) + random_.unit()) /
                          static_cast<double>(samples_) * static_cast<double>(values);
        column.push_back(
            static_cast<std::uint32_t>(std::min(static_cast<std::uint64_t>(at), values - 1)));
      }
      // Exact shares if the number of values divides the number of samples.
      if (samples_ % values == 0)
        for (std::size_t s = 0; s < samples_; ++s)
          column[s] = static_cast<std::uint32_t>(s / (samples_ / values));
      for (std::size_t s = samples_; s > 1; --s)
        std::swap(column[s - 1], column[random_.below(s)]);
    }
  }

  std::vector<std::uint32_t> choices(std::size_t sample) const {
    std::vector<std::uint32_t> found;
    for (const auto& column : samples_of_)
      found.push_back(column[sample]);
    return found;
  }

  DesignId id_of(std::size_t sample) const { return open_.designs().id_of(choices(sample)); }

  /// Repairs a sample that is not open by swapping a value with another sample, which preserves the
  /// strata. Returns whether that succeeded.
  bool mend(std::size_t sample) {
    for (int i = 0; i < kSwaps && samples_ > 1 && !samples_of_.empty(); ++i) {
      auto& column = samples_of_[random_.below(samples_of_.size())];
      const std::size_t other = random_.below(samples_);
      if (column[other] == column[sample])
        continue;
      const bool before = other < sample && ids_[other] == id_of(other); // still at its own design
      if (other < sample && !before)
        continue;
      std::swap(column[sample], column[other]);
      if (before)
        open_.release(ids_[other]);
      const bool good = open_.open(id_of(sample)) && id_of(sample) != id_of(other) &&
                        (!before || open_.open(id_of(other)));
      if (!good)
        std::swap(column[sample], column[other]);
      if (before) {
        ids_[other] = id_of(other);
        open_.take(ids_[other]);
      }
      if (good)
        return true;
    }
    return false;
  }

  void draw() {
    drawn_ = true;
    stratify();
    for (std::size_t s = 0; s < samples_; ++s) {
      std::optional<DesignId> id = id_of(s);
      if (!open_.open(*id))
        id = mend(s) ? id_of(s) : open_.nearby(choices(s), random_);
      if (!id)
        break;
      open_.take(*id);
      ids_.push_back(*id);
    }
    samples_of_.clear();
  }

  OpenDesigns open_;
  std::uint64_t budget_;
  RandomStream random_;
  std::size_t samples_ = 0;
  std::vector<std::vector<std::uint32_t>> samples_of_; ///< [parameter][sample]: value
  std::vector<DesignId> ids_;
  std::size_t next_ = 0;
  bool drawn_ = false;
};

} // namespace

std::unique_ptr<Strategy> latin_strategy(DesignSet designs, const StrategyOptions& options) {
  return std::make_unique<LatinHypercube>(std::move(designs), options);
}

} // namespace monet

// Steps with and without paired gradients, where one operator computes both gradients of a product.
// They serve searches that choose pairs layer by layer.
#pragma once

#include "optimise/shared/pairing.hpp"
#include "options/optimise_options.hpp"

#include "monet/base/errors.hpp"

#include <nlohmann/json_fwd.hpp>

#include <algorithm>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace monet::cli {

/// Variants of a step that a search is made for. If the training options pair gradients, these are
/// the step without pairs and, if some pairs are worthwhile, the step with only these
/// (choose_pairs()). Otherwise, or if stacks are given, there is only the original step.
class PairedSteps {
public:
  /// Chooses the pairs, which uses a quarter of the remaining time. Keeps a reference to `inputs`.
  PairedSteps(const SearchInputs& inputs, Objective objective, CoreCostCache& costs,
              const SearchControl& control, Session& session);

  template <class Result>
  struct Answer {
    const SearchInputs* inputs = nullptr; ///< inputs of the step that the result belongs to
    Result result;
  };
  /// Calls search(inputs, control) for each step with its share of the time, and returns the best
  /// result. The result's certificate (certificate_of(result)) is replaced by one that holds for
  /// all steps.
  template <class Search, class CertificateOf>
  auto search(const SearchControl& control, Search&& search, CertificateOf&& certificate_of) {
    using Result = decltype(search(*steps_.front(), control));
    std::optional<Answer<Result>> best;
    Certificate all{.bound = std::numeric_limits<double>::infinity(), .interrupted = interrupted_};
    for (std::size_t i = 0; i < steps_.size(); ++i) {
      const bool last = i + 1 == steps_.size();
      try {
        Result found = search(*steps_[i], control.share(static_cast<int>(steps_.size() - i)));
        const Certificate& own = certificate_of(found);
        all.bound = std::min(all.bound, own.bound);
        all.interrupted = all.interrupted || own.interrupted;
        all.start = std::fmin(all.start, own.start);
        searched_.emplace_back(i, own.best);
        if (!best || own.best < all.best) {
          all.best = own.best;
          best.emplace(Answer<Result>{steps_[i], std::move(found)});
        }
      } catch (const InfeasibleError&) {
        if (last && !best)
          throw;
      } catch (const Stopped&) { // before the first plan of this step
        if (!best)
          throw;
        all.interrupted = true;
      }
    }
    certificate_of(best->result) = all;
    answer_ = best->inputs;
    return std::move(*best);
  }

  /// Adds the decision after search() as `pairing`: the number of `products` that may be paired,
  /// the names of those `paired` in the answer, and the best values `searched` for each step. Adds
  /// nothing if there was no choice of pairs.
  void add_to(nlohmann::ordered_json& result) const;
  /// Decision on pairs as one line of text; empty if there was no choice of pairs.
  std::string line() const;

private:
  std::vector<const SearchInputs*> steps_;
  std::vector<std::unique_ptr<SearchInputs>> made_;
  std::size_t products_ = 0;
  bool interrupted_ = false;                             ///< a limit ended the choice of pairs
  std::vector<std::pair<std::size_t, double>> searched_; ///< index of the step, best value
  const SearchInputs* answer_ = nullptr;
};

} // namespace monet::cli

// Steps whose products compute both their gradients in one operator, for searches that decide it
// layer by layer.
#pragma once

#include "options/optimise_options.hpp"

#include "monet/base/errors.hpp"
#include "monet/optimise/pairing.hpp"

#include <nlohmann/json_fwd.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace monet::cli {

/// The steps that a search is made for. Where the training options pair gradients: the one without
/// pairs, and the one with those of them that pay (choose_pairs()), where any do. Else, and where
/// stacks are given, the step as it is.
class PairedSteps {
public:
  /// Keeps a reference to `inputs`. Takes a quarter of the time that there is.
  PairedSteps(const SearchInputs& inputs, Objective objective, CoreCostCache& costs,
              const SearchControl& control, Session& session);

  template <class Result>
  struct Answer {
    const SearchInputs* inputs = nullptr; ///< of the step that it is of
    Result result;
  };
  /// search(inputs, control) of each step, in its part of the time: the best result, whose
  /// certificate (certificate_of(result)) then holds for all of these steps.
  template <class Search, class CertificateOf>
  auto search(const SearchControl& control, Search&& search, CertificateOf&& certificate_of) {
    using Result = decltype(search(*steps_.front(), control));
    std::optional<Answer<Result>> best;
    Certificate all;
    all.bound = std::numeric_limits<double>::infinity();
    all.interrupted = interrupted_;
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
      } catch (const Stopped&) { // before this one's first plan
        if (!best)
          throw;
        all.interrupted = true;
      }
    }
    certificate_of(best->result) = all;
    answer_ = best->inputs;
    return std::move(*best);
  }

  /// Adds what was decided, after search(), as `pairing`: the number of `products` that may be
  /// paired, the names of those that are `paired` in the answer, and what the searches of each step
  /// came to. Nothing where pairs are as the training options say.
  void add_to(nlohmann::ordered_json& result) const;
  /// The same in a line.
  std::string line() const;

private:
  std::vector<const SearchInputs*> steps_;
  std::vector<std::unique_ptr<SearchInputs>> made_;
  std::size_t products_ = 0;
  bool interrupted_ = false;                             ///< a limit ended the choice of pairs
  std::vector<std::pair<std::size_t, double>> searched_; ///< step, best
  const SearchInputs* answer_ = nullptr;
};

} // namespace monet::cli

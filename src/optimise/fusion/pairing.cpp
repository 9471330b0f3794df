// Searches for products whose gradients run as one paired operator; optimise uses it for training
// steps.
#include "optimise/shared/pairing.hpp"

#include "base/shared/parallel.hpp"
#include "workload/shared/operators.hpp"

#include "monet/base/errors.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <utility>

namespace monet {

namespace {

/// Key of products whose gradients are computed alike, except for their surroundings.
struct ProductForm {
  std::vector<std::int64_t> sizes;
  std::vector<ElementType> types;
  friend auto operator<=>(const ProductForm&, const ProductForm&) = default;
};
ProductForm form_of(const Graph& graph, const Operator& op) {
  ProductForm form;
  for (const LoopDim& dim : op.nest.dims)
    form.sizes.push_back(dim.size);
  for (const Access& access : op.nest.operands) {
    const Tensor& tensor = graph.tensor(access.tensor);
    form.types.push_back(tensor.type);
    form.sizes.push_back(-std::ssize(tensor.shape)); // marks the start of a shape
    form.sizes.insert(form.sizes.end(), tensor.shape.begin(), tensor.shape.end());
  }
  return form;
}

class PairingSearch {
public:
  PairingSearch(const PairingProblem& problem, const PairingOptions& options,
                const SearchControl& control)
      : problem_(problem), products_(problem.products), options_(options), control_(control) {}

  PairingResult run() {
    result_.interrupted = !control_.finishes([&] { search(); }) || control_.interrupted();
    if (!best_)
      throw InfeasibleError(why_not_);
    result_.paired = names(*best_);
    return std::move(result_);
  }

private:
  using Paired = std::vector<bool>; ///< per product

  void search() {
    std::vector<Paired> plain{Paired(products_.size(), false)};
    if (!products_.empty())
      plain.emplace_back(products_.size(), true);
    try_all(plain);
    const StopScope scope(control_.stop_request());
    if (!best_ || products_.empty())
      return;
    std::vector<std::vector<std::size_t>> alone;
    for (std::size_t i = 0; i < products_.size(); ++i)
      alone.push_back({i});
    const auto kinds = kinds_of_products();
    while (!control_.interrupted() && flip(kinds)) {
    }
    if (!control_.interrupted())
      flip(alone);
  }

  /// Products grouped by form, ordered by the first of each group.
  std::vector<std::vector<std::size_t>> kinds_of_products() const {
    const TrainingGraph all = problem_.make(products_);
    std::map<std::string_view, const Operator*> pair_of;
    for (const Operator& op : all.graph.operators()) {
      const auto tensors = gradient_tensors(op);
      if (tensors && tensors->dx && tensors->dw && op.forward_op)
        pair_of.emplace(all.graph.op(*op.forward_op).name, &op);
    }
    std::vector<std::vector<std::size_t>> kinds;
    std::map<ProductForm, std::size_t> known;
    for (std::size_t i = 0; i < products_.size(); ++i) {
      const auto found = pair_of.find(products_[i]);
      if (found == pair_of.end())
        continue;
      const auto [at, added] = known.emplace(form_of(all.graph, *found->second), kinds.size());
      if (added)
        kinds.emplace_back();
      kinds[at->second].push_back(i);
    }
    return kinds;
  }

  /// Tries the best choice with each set flipped, then with all improving flips. Returns whether
  /// that improved it.
  bool flip(const std::vector<std::vector<std::size_t>>& sets) {
    const Paired from = *best_;
    const double before = best_value_;
    const auto other = [](Paired paired, const std::vector<std::size_t>& set) {
      for (const std::size_t i : set)
        paired[i] = !paired[i];
      return paired;
    };
    std::vector<Paired> tries;
    for (const auto& set : sets)
      tries.push_back(other(from, set));
    const std::vector<double> values = try_all(tries);
    Paired together = from;
    for (std::size_t s = 0; s < sets.size(); ++s) {
      if (values[s] < before)
        together = other(std::move(together), sets[s]);
    }
    try_all({together});
    return best_value_ < before;
  }

  /// Values of the choices; infinite if one cannot be scheduled, was tried before or exceeds the
  /// limit.
  std::vector<double> try_all(const std::vector<Paired>& tries) {
    std::vector<double> values(tries.size(), std::numeric_limits<double>::infinity());
    std::vector<std::size_t> fresh;
    for (std::size_t i = 0; i < tries.size(); ++i) {
      if (evaluations_ < options_.evaluations && seen_.insert(tries[i]).second) {
        fresh.push_back(i);
        ++evaluations_;
      }
    }
    std::vector<std::optional<StepFigures>> figures(fresh.size());
    std::vector<std::string> why_not(fresh.size());
    parallel_for(fresh.size(), control_.jobs, [&](std::size_t i) {
      control_.finishes([&] {
        try {
          figures[i] = figures_of(tries[fresh[i]]);
        } catch (const InfeasibleError& error) {
          why_not[i] = error.what();
        }
      });
    });
    for (std::size_t i = 0; i < fresh.size(); ++i) {
      if (figures[i])
        values[fresh[i]] = offer(tries[fresh[i]], *figures[i]);
      else if (why_not_.empty())
        why_not_ = why_not[i];
    }
    control_.tell({"pairs of gradients", evaluations_, options_.evaluations,
                   best_ ? best_value_ : std::numeric_limits<double>::quiet_NaN(),
                   std::numeric_limits<double>::quiet_NaN()});
    return values;
  }

  StepFigures figures_of(const Paired& paired) const {
    const TrainingGraph step = problem_.make(names(paired));
    return choose_step(step, problem_.chip, problem_.step, {options_.mode, options_.objective},
                       problem_.costs)
        .figures;
  }

  /// Keeps the choice if it is the best.
  double offer(const Paired& paired, const StepFigures& figures) {
    const auto count = static_cast<std::size_t>(std::ranges::count(paired, true));
    result_.trials.push_back({count, figures});
    const double value = figures.value(options_.objective);
    if (!best_ || value < best_value_) {
      best_ = paired;
      best_value_ = value;
      result_.figures = figures;
    }
    return value;
  }

  std::vector<std::string> names(const Paired& paired) const {
    std::vector<std::string> names;
    for (std::size_t i = 0; i < paired.size(); ++i) {
      if (paired[i])
        names.push_back(products_[i]);
    }
    return names;
  }

  const PairingProblem& problem_;
  const std::vector<std::string>& products_;
  const PairingOptions& options_;
  const SearchControl& control_;
  std::set<Paired> seen_;
  std::optional<Paired> best_;
  double best_value_ = std::numeric_limits<double>::infinity();
  std::int64_t evaluations_ = 0;
  std::string why_not_;
  PairingResult result_;
};

} // namespace

PairingResult choose_pairs(const PairingProblem& problem, const PairingOptions& options,
                           const SearchControl& control) {
  return PairingSearch(problem, options, control).run();
}

} // namespace monet

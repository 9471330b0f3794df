// The set of designs that strategies search, and the table of strategies by name. Commands call
// make_strategy() and pass the strategy to explore().
#include "monet/explore/strategy.hpp"

#include "explore/space/mixed_radix.hpp"
#include "explore/strategy/strategies.hpp"

#include "monet/base/errors.hpp"

#include <array>
#include <limits>

namespace monet {

std::uint64_t DesignSet::size() const {
  std::uint64_t product = 1;
  for (const std::uint32_t count : values) {
    internal_check(count > 0 && product <= std::numeric_limits<std::uint64_t>::max() / count,
                   "a space of no designs, or of more than 64 bits can number");
    product *= count;
  }
  return product;
}

std::vector<std::uint32_t> DesignSet::choices(DesignId id) const {
  return mixed_radix_digits(id, values.size(), [&](std::size_t p) { return values[p]; });
}

DesignId DesignSet::id_of(const std::vector<std::uint32_t>& choices) const {
  return mixed_radix_number(choices, [&](std::size_t p) { return values[p]; });
}

std::span<const std::pair<std::string_view, std::string_view>> strategy_names() {
  static constexpr std::array<std::pair<std::string_view, std::string_view>, 6> names{{
      {"exhaustive", "all designs that satisfy the constraints, in order of their numbers"},
      {"random", "random designs without repetition"},
      {"lhs", "Latin hypercube: every value of every parameter equally often"},
      {"climb", "hill climbing from the best design so far to its neighbours, until none is better "
                "in any objective"},
      {"nsga2", "genetic search for all fronts at once"},
      {"racing", "all designs that may be on a front by their lower bounds; finds the fronts of "
                 "exhaustive. halving: former name"},
  }};
  return names;
}

std::unique_ptr<Strategy> make_strategy(DesignSet designs, DesignEvaluator& evaluator,
                                        const StrategyOptions& options) {
  if (options.name == "exhaustive")
    return exhaustive_strategy(std::move(designs), options);
  if (options.name == "random")
    return random_strategy(std::move(designs), options);
  if (options.name == "lhs")
    return latin_strategy(std::move(designs), options);
  if (options.name == "climb")
    return climbing_strategy(std::move(designs), options);
  if (options.name == "nsga2")
    return genetic_strategy(std::move(designs), options);
  if (options.name == "racing" || options.name == "halving")
    return racing_strategy(std::move(designs), evaluator, options);
  throw InternalError("no strategy is called " + options.name);
}

DesignSet design_set(const Space& space) {
  DesignSet designs;
  for (const Parameter& parameter : space.parameters)
    designs.values.push_back(static_cast<std::uint32_t>(parameter.values.size()));
  designs.excludes = [&space](DesignId id) { return !space.broken_constraint(id).empty(); };
  designs.fronts = space.fronts;
  return designs;
}

std::unique_ptr<Strategy> make_strategy(const Space& space, DesignEvaluator& evaluator,
                                        const StrategyOptions& options) {
  return make_strategy(design_set(space), evaluator, options);
}

} // namespace monet

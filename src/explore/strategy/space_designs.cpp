// Strategies over the designs of a space as it was read.
#include "monet/explore/design_set.hpp"
#include "monet/explore/strategy.hpp"

namespace monet {

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

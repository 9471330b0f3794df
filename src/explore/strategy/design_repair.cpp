// Finds a design that can be evaluated near a given one. The genetic and Latin hypercube strategies
// repair designs with it that constraints exclude or that were evaluated before.
#include "explore/strategy/design_repair.hpp"

#include <algorithm>
#include <tuple>

namespace monet {

namespace {

constexpr std::size_t kSteps = 512;     ///< divided by the parameters: maximum distance
constexpr std::size_t kTries = 64;      ///< per number of changed parameters
constexpr std::size_t kAnywhere = 4096; ///< uniform draws as a fallback

} // namespace

bool OpenDesigns::open(DesignId id) {
  if (taken_.count(id) != 0 || excluded_.count(id) != 0)
    return false;
  if (designs_.keeps(id))
    return true;
  excluded_.insert(id);
  return false;
}

std::vector<std::uint32_t> OpenDesigns::random_choices(RandomStream& random) const {
  std::vector<std::uint32_t> choices;
  for (const std::uint32_t count : designs_.values)
    choices.push_back(static_cast<std::uint32_t>(random.below(count)));
  return choices;
}

std::optional<DesignId> OpenDesigns::one_step(const std::vector<std::uint32_t>& choices,
                                              RandomStream& random) {
  struct Step {
    std::uint32_t distance;
    std::uint64_t turn; ///< random order at equal distance
    std::size_t parameter;
    std::uint32_t value;
  };
  std::vector<Step> steps;
  for (std::size_t p = 0; p < choices.size(); ++p) {
    const std::uint32_t here = choices[p];
    const auto reach = static_cast<std::uint32_t>(kSteps / choices.size() + 1);
    const std::uint32_t first = here > reach ? here - reach : 0;
    const std::uint32_t last = std::min(designs_.values[p] - 1, here + reach);
    for (std::uint32_t v = first; v <= last; ++v)
      if (v != here)
        steps.push_back({v > here ? v - here : here - v, random.bits(), p, v});
  }
  std::ranges::sort(steps, [](const Step& a, const Step& b) {
    return std::tie(a.distance, a.turn) < std::tie(b.distance, b.turn);
  });
  std::vector<std::uint32_t> changed = choices;
  for (const Step& step : steps) {
    changed[step.parameter] = step.value;
    if (const DesignId id = designs_.id_of(changed); open(id))
      return id;
    changed[step.parameter] = choices[step.parameter];
  }
  return std::nullopt;
}

std::optional<DesignId> OpenDesigns::nearby(const std::vector<std::uint32_t>& choices,
                                            RandomStream& random) {
  if (const DesignId id = designs_.id_of(choices); open(id))
    return id;
  if (const auto id = one_step(choices, random))
    return id;
  for (std::size_t changes = 2; changes <= choices.size(); ++changes)
    for (std::size_t i = 0; i < kTries; ++i) {
      std::vector<std::uint32_t> changed = choices;
      for (std::size_t k = 0; k < changes; ++k) {
        const std::size_t p = random.below(choices.size());
        changed[p] = static_cast<std::uint32_t>(random.below(designs_.values[p]));
      }
      if (const DesignId id = designs_.id_of(changed); open(id))
        return id;
    }
  for (std::size_t i = 0; i < kAnywhere; ++i)
    if (const DesignId id = designs_.id_of(random_choices(random)); open(id))
      return id;
  return std::nullopt;
}

} // namespace monet

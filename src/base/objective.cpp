// Names and values of the objectives that searches minimise; used by the options and reports of
// every search.
#include "monet/base/objective.hpp"

#include <algorithm>
#include <array>

namespace monet {

namespace {

constexpr std::array<std::string_view, 8> kNames{"latency", "energy", "edp",   "dram",
                                                 "memory",  "area",   "power", "error"};

} // namespace

std::string_view name_of(Objective objective) {
  return kNames.at(static_cast<std::size_t>(objective));
}

std::optional<Objective> objective_named(std::string_view name, std::span<const Objective> among) {
  const auto found = std::ranges::find(among, name, name_of);
  return found == among.end() ? std::nullopt : std::optional(*found);
}

std::optional<Objective> objective_named(std::string_view name) {
  const auto* const found = std::ranges::find(kNames, name);
  return found == kNames.end() ? std::nullopt
                               : std::optional(static_cast<Objective>(found - kNames.begin()));
}

} // namespace monet

#include "monet/base/objective.hpp"

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
  for (const Objective objective : among) {
    if (name_of(objective) == name)
      return objective;
  }
  return std::nullopt;
}

std::optional<Objective> objective_named(std::string_view name) {
  for (std::size_t i = 0; i < kNames.size(); ++i) {
    if (kNames[i] == name)
      return static_cast<Objective>(i);
  }
  return std::nullopt;
}

} // namespace monet

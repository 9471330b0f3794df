// Writes amounts of memory and time with units (shared/amounts.hpp); messages of every stage and
// tables use it.
#include "base/shared/amounts.hpp"

#include "base/shared/text.hpp"

#include <fmt/core.h>

#include <array>

namespace monet {

std::string both_bytes(std::int64_t bytes) {
  constexpr std::int64_t kFew = 1000;
  const std::string all = group_digits(bytes) + " bytes";
  return bytes < kFew ? all : fmt::format("{} ({})", human_bytes(bytes), all);
}

std::string human_duration(double seconds, int digits) {
  struct Unit {
    double least; ///< seconds from which the unit is used
    double seconds;
    const char* name;
  };
  constexpr std::array kUnits{Unit{1e6, 86400, "days"}, Unit{1e4, 3600, "h"}, Unit{1, 1, "s"},
                              Unit{1e-5, 1e-3, "ms"}, Unit{1e-6, 1e-6, "us"}};
  for (const Unit& unit : kUnits) {
    if (seconds >= unit.least)
      return fmt::format("{:.{}g} {}", seconds / unit.seconds, digits, unit.name);
  }
  return seconds > 0 ? fmt::format("{:.{}g} ns", seconds / 1e-9, digits) : "0 ms";
}

} // namespace monet

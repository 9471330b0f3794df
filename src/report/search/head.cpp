#include "monet/report/search_result.hpp"
#include "monet/report/text.hpp"

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include <cmath>

namespace monet {

nlohmann::ordered_json number_json(double value) {
  return std::isfinite(value) ? nlohmann::ordered_json(value) : nlohmann::ordered_json(nullptr);
}

nlohmann::ordered_json search_json(const SearchHead& head) {
  return {{"schema_version", 1},
          {"kind", head.kind},
          {"name", valid_utf8(head.name)},
          {"objective", head.objective},
          {"best", number_json(head.found.best)},
          {"bound", number_json(head.found.bound)},
          {"gap", number_json(head.found.gap())},
          {"seconds", head.seconds},
          {"interrupted", head.found.interrupted}};
}

std::string gap_text(const Certificate& found) {
  const double gap = found.gap();
  return std::isfinite(found.best) && std::isfinite(gap) ? fmt::format("{:.2f} %", 100 * gap)
                                                         : "unknown";
}

} // namespace monet

// Members that begin the JSON of every search (SearchHead), and texts of its bound and gap.
#include "report/shared/search_result.hpp"
#include "report/shared/text.hpp"

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
          {"interrupted", head.found.interrupted},
          {"start", number_json(head.found.start)},
          {"worse_than_start", head.found.is_worse_than_start()}};
}

std::string worse_text(std::string_view objective, const Certificate& found) {
  if (!found.is_worse_than_start())
    return {};
  if (!std::isfinite(found.best))
    return "worse than the start of the search: no result was found\n";
  return fmt::format("worse than the start of the search: {} {:.6g} after {:.6g} ({:.1f} %)\n",
                     objective, found.best, found.start, 100 * found.best / found.start);
}

std::string gap_text(const Certificate& found) {
  const double gap = found.gap();
  return std::isfinite(found.best) && std::isfinite(gap) ? fmt::format("{:.2f} %", 100 * gap)
                                                         : "unknown";
}

} // namespace monet

// Writes designs as comma-separated values (RFC 4180), one row per design.
#include "explore/shared/run_figures.hpp"
#include "explore/store/schema.hpp"

#include "monet/base/errors.hpp"

#include <fmt/core.h>

#include <iterator>

namespace monet {

namespace {

std::string field(const std::string& text) {
  if (text.find_first_of("\",\r\n") == std::string::npos)
    return text;
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"')
      quoted += '"';
    quoted += c;
  }
  return quoted + '"';
}

std::string header_of(const Space& space) {
  std::string line = "id";
  for (const Parameter& parameter : space.parameters)
    line += "," + field(parameter.name);
  const std::vector<std::string> columns = result_columns(space);
  for (std::size_t c = 1; c + 2 < columns.size(); ++c)
    line += "," + field(columns[c]);
  return line + "\n";
}

} // namespace

std::string designs_csv(std::span<const DesignResult> results, const Space& space) {
  std::string text = header_of(space);
  auto out = std::back_inserter(text);
  for (const DesignResult& result : results) {
    internal_check(!result.feasible || (result.runs.size() == space.workload.runs.size() &&
                                        result.metrics.size() == space.workload.metrics.size()),
                   "a design's result has not the runs and metrics of its space");
    fmt::format_to(out, "{}", result.id);
    const std::vector<std::uint32_t> choices = space.choices(result.id);
    for (std::size_t p = 0; p < choices.size(); ++p)
      fmt::format_to(out, ",{}", field(space.parameters[p].values[choices[p]].text));
    fmt::format_to(out, ",{},{},{},{},{}", result.feasible ? 1 : 0, field(result.reason),
                   result.area_mm2, result.peak_power_w, result.frequency_hz);
    for (std::size_t r = 0; r < space.workload.runs.size(); ++r) {
      if (!result.feasible)
        text.append(kRunFigures.size(), ',');
      else
        for_each_run_figure(result.runs[r],
                            [&](const char*, auto figure) { fmt::format_to(out, ",{}", figure); });
    }
    for (std::size_t m = 0; m < space.workload.metrics.size(); ++m) {
      if (!result.feasible)
        text += ",";
      else
        fmt::format_to(out, ",{}", result.metrics[m].value);
    }
    text += '\n';
  }
  return text;
}

} // namespace monet

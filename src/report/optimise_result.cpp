// JSON and tables that compare steps before and after a search: figures, memory over time and
// groups. Searches and `monet run` with `optimise:` write them.
#include "report/shared/optimise_result.hpp"

#include "base/shared/text.hpp"
#include "report/shared/text.hpp"
#include "report/timeline_json.hpp"
#include "schedule/shared/bounds.hpp"

#include "monet/training_graph/liveness.hpp"

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <map>
#include <set>

namespace monet {

namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kMoments = 1'000;
constexpr std::size_t kLargestPicture = 4'000; ///< maximum number of operators of a picture

/// Text with the percentage that `value` is of `of`: "12.3 k (85.0 %)".
std::string with_share(const std::string& text, double value, double of) {
  return of > 0 ? fmt::format("{} ({:.1f} %)", text, 100 * value / of) : text;
}

} // namespace

Json memory_over_time_json(const std::string& name, const Timeline& timeline) {
  const std::size_t merge = (timeline.live.size() + kMoments - 1) / kMoments;
  const Json live = live_json(timeline, std::max<std::size_t>(1, merge));
  Json json = {{"name", valid_utf8(name)}, {"unit", "cycle"}};
  for (const auto& [key, value] : live.items())
    json[key == "cycles" ? "at" : key] = value;
  return json;
}

Json figures_json(const std::string& name, const StepFigures& figures) {
  return {{"name", valid_utf8(name)},
          {"latency_cycles", figures.latency_cycles},
          {"energy_pj", figures.energy_pj},
          {"offchip_bytes", bytes_of(Bits{figures.offchip_bits})},
          {"peak_memory_bytes", figures.peak_memory_bytes},
          {"stored_activations_bytes", figures.stored_bytes}};
}

std::string compared_table(const Json& rows) {
  std::vector<std::vector<std::string>> table{
      {"", "latency (cycles)", "energy", "off-chip", "peak memory", "stored activations"}};
  for (const Json& row : rows) {
    const Json& first = rows.front();
    std::vector<std::string> cells{row.at("name").get<std::string>()};
    for (const char* key : {"latency_cycles", "energy_pj", "offchip_bytes", "peak_memory_bytes",
                            "stored_activations_bytes"}) {
      const double value = row.at(key).get<double>();
      std::string text;
      if (key == std::string_view("latency_cycles"))
        text = group_digits(row.at(key).get<std::int64_t>());
      else if (key == std::string_view("energy_pj"))
        text = human_energy(value);
      else
        text = human_bytes(row.at(key).get<std::int64_t>());
      cells.push_back(&row == &first ? text : with_share(text, value, first.at(key).get<double>()));
    }
    table.push_back(std::move(cells));
  }
  return aligned_table(table);
}

std::vector<std::uint32_t> groups_of(const TileGraph& tiles) {
  std::map<std::uint32_t, std::uint32_t> members;
  for (const std::uint32_t stack : tiles.stack_of)
    ++members[stack];
  std::map<std::uint32_t, std::uint32_t> numbers;
  std::vector<std::uint32_t> groups;
  for (const std::uint32_t stack : tiles.stack_of) {
    if (members[stack] < 2)
      groups.push_back(kAlone);
    else
      groups.push_back(numbers.emplace(stack, numbers.size()).first->second);
  }
  return groups;
}

namespace {

/// Objectives of the searches in which the step after them is worse, each once with both values.
Json worse_json(const std::vector<Json>& searches, const StepFigures& before,
                const StepFigures& after) {
  Json rows = Json::array();
  std::set<Objective> seen;
  for (const Json& search : searches) {
    const auto objective = objective_named(search.at("objective").get<std::string>());
    if (!objective || !seen.insert(*objective).second)
      continue; // the result of a front has no single objective
    const double was = before.value(*objective);
    const double is = after.value(*objective);
    if (is > was)
      rows.push_back({{"objective", name_of(*objective)}, {"before", was}, {"after", is}});
  }
  return rows;
}

} // namespace

std::string worse_text(const Json& optimise) {
  std::string text;
  for (const Json& row : optimise.at("worse"))
    text += fmt::format("{}{} {:.1f} %", text.empty() ? "worse than before the searches: " : ", ",
                        row.at("objective").get<std::string>(),
                        100 * row.at("after").get<double>() / row.at("before").get<double>());
  return text.empty() ? text : text + "\n";
}

Json optimise_json(const OptimisedStep& optimised, const Chip& chip) {
  const auto figures = [&](const StepResult& of) {
    return figures_of(*of.timeline, *of.tiles, *of.step, chip);
  };
  const StepFigures before = figures(optimised.before);
  const StepFigures after = figures(optimised.after);
  Json json = {{"searches", optimised.searches},
               {"interrupted", optimised.interrupted},
               {"worse", worse_json(optimised.searches, before, after)},
               {"compared", {figures_json("before", before), figures_json("after", after)}},
               {"memory",
                {memory_over_time_json("before", *optimised.before.timeline),
                 memory_over_time_json("after", *optimised.after.timeline)}}};
  const std::vector<std::uint32_t> groups = groups_of(*optimised.after.tiles);
  const bool fused =
      std::any_of(groups.begin(), groups.end(), [](std::uint32_t g) { return g != kAlone; });
  if (fused && groups.size() <= kLargestPicture)
    json["picture"] = graph_svg(*optimised.after.step, groups);
  return json;
}

} // namespace monet

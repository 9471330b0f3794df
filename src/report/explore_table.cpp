// Prints the tables of `monet explore` from explore.json, and defines the texts of
// explore_text.hpp.
#include "base/shared/amounts.hpp"
#include "base/shared/text.hpp"
#include "report/explore_text.hpp"
#include "report/shared/explore_result.hpp"
#include "report/shared/text.hpp"

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include <algorithm>

namespace monet {

using Json = nlohmann::ordered_json;

namespace explore_text {

namespace {

std::string with_unit(double value, const char* unit) {
  return value > 0 ? fmt::format("{:.5g}{}", value, unit) : "-";
}

std::string latency(const Json& design) {
  const auto seconds = design.find("latency_seconds");
  const std::string cycles = group_digits(design.at("latency_cycles").get<std::int64_t>());
  return seconds == design.end()
             ? cycles
             : fmt::format("{} ({})", cycles, human_duration(seconds->get<double>(), 4));
}

} // namespace

const char* key_of(const std::string& objective) {
  return objective == "latency"  ? "latency_cycles"
         : objective == "energy" ? "energy_pj"
         : objective == "memory" ? "peak_memory_bytes"
         : objective == "area"   ? "area_mm2"
         : objective == "error"  ? "error"
                                 : "peak_power_w";
}

Json part_of_box(std::vector<Objectives> points, const Objectives& best, const Objectives& worst) {
  constexpr std::size_t kMaxPoints = 20'000;
  constexpr std::size_t kMaxPointsOfFour = 1'000;
  if (points.size() > (best.size() > 3 ? kMaxPointsOfFour : kMaxPoints))
    return nullptr;
  for (Objectives& values : points) {
    for (std::size_t i = 0; i < values.size(); ++i)
      values[i] = worst[i] > best[i] ? (values[i] - best[i]) / (worst[i] - best[i]) : 0;
  }
  return hypervolume(points, Objectives(best.size(), 1));
}

std::string value(const Json& design, const std::string& objective) {
  if (objective == "latency")
    return latency(design);
  const Json& figure = design.at(key_of(objective));
  if (objective == "energy")
    return human_energy(figure.get<double>());
  if (objective == "memory")
    return human_bytes(figure.get<std::int64_t>());
  if (objective == "error")
    return fmt::format("{:.4g} %", 100 * figure.get<double>());
  return with_unit(figure.get<double>(), objective == "area" ? " mm2" : " W");
}

std::string parameter(const Json& value) {
  return value.is_string() ? printable(value.get<std::string>()) : json_text(value);
}

std::string parameters(const Json& design) {
  std::string text;
  for (const auto& [name, value] : design.at("parameters").items())
    text += (text.empty() ? "" : ", ") + printable(name) + " " + parameter(value);
  return text;
}

} // namespace explore_text

namespace {

/// Maximum number of rows of a front; longer fronts are thinned evenly, with both ends kept.
constexpr std::size_t kMaxFrontRows = 12;
constexpr std::size_t kMaxReasonRows = 10;

std::string count_of(const Json& value) {
  return group_digits(value.get<std::int64_t>());
}

/// Columns of the tables of designs.
struct Columns {
  std::vector<std::string> parameters;
  /// Energy, area, power and error, each if some design has a value.
  std::vector<std::string> objectives;
};

/// Whether some best design has an energy; clusters whose devices are kernel tables have no
/// energies.
bool has_energies(const Json& exploration) {
  const Json& best = exploration.at("best");
  return std::any_of(best.begin(), best.end(), [](const Json& of_run) {
    return std::any_of(of_run.begin(), of_run.end(),
                       [](const Json& design) { return design.at("energy_pj").get<double>() > 0; });
  });
}

Columns columns_of(const Json& exploration) {
  Columns columns;
  for (const Json& parameter : exploration.at("space").at("parameters"))
    columns.parameters.push_back(parameter.at("name").get<std::string>());
  columns.objectives = {"latency", "memory"};
  if (has_energies(exploration))
    columns.objectives.insert(columns.objectives.begin() + 1, "energy");
  for (const char* objective : {"area", "power", "error"}) {
    const Json& best = exploration.at("best");
    if (std::any_of(best.begin(), best.end(),
                    [&](const Json& of_run) { return of_run.contains(objective); }))
      columns.objectives.emplace_back(objective);
  }
  return columns;
}

std::vector<std::string> design_row(const Json& design, const Columns& columns) {
  std::vector<std::string> row{json_text(design.at("id"))};
  for (const std::string& name : columns.parameters)
    row.push_back(explore_text::parameter(design.at("parameters").at(name)));
  for (const std::string& objective : columns.objectives)
    row.push_back(explore_text::value(design, objective));
  return row;
}

std::vector<std::string> design_head(std::string first, const Columns& columns) {
  std::vector<std::string> head{std::move(first)};
  for (const std::string& name : columns.parameters)
    head.push_back(printable(name));
  for (const std::string& objective : columns.objectives) {
    head.push_back(objective == "latency"  ? "latency (cycles)"
                   : objective == "memory" ? "peak memory"
                   : objective == "power"  ? "peak power"
                                           : objective);
  }
  return head;
}

std::string front_text(const std::string& name, const Json& front, const Columns& columns) {
  const Json& designs = front.at("designs");
  std::string text = fmt::format("\nFront of {}: {} design{}", name, designs.size(),
                                 designs.size() == 1 ? "" : "s");
  if (designs.empty())
    return text + "\n";
  const std::size_t rows = std::min(designs.size(), kMaxFrontRows);
  if (rows < designs.size())
    text += fmt::format(", {} listed", rows);
  std::vector<std::vector<std::string>> table{design_head("design", columns)};
  for (std::size_t i = 0; i < rows; ++i) {
    const std::size_t at = rows > 1 ? i * (designs.size() - 1) / (rows - 1) : 0;
    table.push_back(design_row(designs[at], columns));
  }
  return text + "\n" + aligned_table(table);
}

std::string best_text(const Json& exploration, const Columns& columns) {
  std::string text;
  for (const auto& [run, objectives] : exploration.at("best").items()) {
    if (objectives.empty())
      continue;
    std::vector<std::vector<std::string>> table{design_head("least", columns)};
    table.front().insert(table.front().begin() + 1, "design");
    for (const auto& [objective, design] : objectives.items()) {
      table.push_back(design_row(design, columns));
      table.back().insert(table.back().begin(), objective);
    }
    text += fmt::format("\nBest for {}\n", run) + aligned_table(table);
  }
  return text;
}

std::string reasons_text(const Json& exploration) {
  const Json& reasons = exploration.at("reasons");
  if (reasons.empty())
    return "";
  std::string text = "\nWhy designs are infeasible (# stands for numbers)\n";
  for (std::size_t i = 0; i < std::min(reasons.size(), kMaxReasonRows); ++i) {
    text += fmt::format("{:>8}  {}\n", count_of(reasons[i].at("designs")),
                        printable(reasons[i].at("reason").get<std::string>()));
  }
  if (reasons.size() > kMaxReasonRows)
    text += fmt::format("          and {} other reasons\n", reasons.size() - kMaxReasonRows);
  return text;
}

} // namespace

std::string exploration_table(const Json& exploration) {
  const Columns columns = columns_of(exploration);
  std::string text = fmt::format("{}: {} designs of {} parameters, {}\n",
                                 printable(exploration.at("name").get<std::string>()),
                                 count_of(exploration.at("designs")), columns.parameters.size(),
                                 exploration.at("strategy").get<std::string>());
  text += fmt::format(
      "{} evaluated, {} infeasible, {} skipped by bounds, {} excluded by constraints"
      "{}\n",
      count_of(exploration.at("evaluated")), count_of(exploration.at("infeasible")),
      count_of(exploration.at("skipped_by_bound")), count_of(exploration.at("excluded")),
      exploration.at("interrupted").get<bool>() ? "; interrupted" : "");
  for (const auto& [name, front] : exploration.at("fronts").items())
    text += front_text(name, front, columns);
  return text + best_text(exploration, columns) + reasons_text(exploration);
}

} // namespace monet

// Writes a comparison of results (shared/result_comparison.hpp) as tables for terminals and as CSV.
#include "base/shared/text.hpp"
#include "report/shared/result_comparison.hpp"
#include "report/shared/text.hpp"

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>

namespace monet {

namespace {

using Json = nlohmann::ordered_json;
using Table = std::vector<std::vector<std::string>>;

/// A value with its unit in a readable form; "-" for none.
std::string text_of(const Json& value, std::string_view unit) {
  if (value.is_null())
    return "-";
  if (unit == "pJ")
    return human_energy(value.get<double>());
  if (unit == "bytes")
    return human_bytes(value.get<std::int64_t>());
  if (value.is_number_integer())
    return group_digits(value.get<std::int64_t>());
  return fmt::format("{:.5g}", value.get<double>());
}

/// A value relative to the first one, such as "x1.25"; "" where either is missing or zero.
std::string ratio_of(const Json& value, const Json& first) {
  if (value.is_null() || first.is_null() || first.get<double>() == 0)
    return "";
  return fmt::format("x{:.4g}", value.get<double>() / first.get<double>());
}

double number_of(const Json& value) {
  return value.is_null() ? 0 : value.get<double>();
}

/// Difference of integers with its sign.
std::string difference_of(const Json& value, const Json& first) {
  const auto difference = static_cast<std::int64_t>(number_of(value) - number_of(first));
  return (difference > 0 ? "+" : "") + group_digits(difference);
}

std::vector<std::string> heading(const Json& comparison, std::vector<std::string> names,
                                 const std::string& compared) {
  const Json& runs = comparison.at("runs");
  for (std::size_t i = 0; i < runs.size(); ++i) {
    names.push_back(static_cast<char>('A' + i % 26) + std::string());
    if (i > 0)
      names.push_back(compared);
  }
  return names;
}

/// Rows of named values, with the ratio of each value to the first.
std::string totals_table(const Json& comparison) {
  Table table{heading(comparison, {"total"}, "")};
  for (const Json& total : comparison.at("totals")) {
    const Json& values = total.at("values");
    const auto& unit = total.at("unit").get_ref<const std::string&>();
    std::vector<std::string> row{total.at("name").get<std::string>() +
                                 (unit == "cycles" || unit == "ns" ? " (" + unit + ")" : "")};
    for (std::size_t i = 0; i < values.size(); ++i) {
      row.push_back(text_of(values[i], unit));
      if (i > 0)
        row.push_back(ratio_of(values[i], values[0]));
    }
    table.push_back(std::move(row));
  }
  return aligned_table(table);
}

/// Rows of cycles or nanoseconds, with the difference of each value from the first.
std::string differences_table(const Json& comparison, const std::string& title, const Json& rows,
                              const char* name, const char* values_key) {
  Table table{heading(comparison, {title}, "difference")};
  for (const Json& one : rows) {
    const Json& values = one.at(values_key);
    std::vector<std::string> row{one.at(name).get<std::string>()};
    for (std::size_t i = 0; i < values.size(); ++i) {
      row.push_back(text_of(values[i], "cycles"));
      if (i > 0)
        row.push_back(difference_of(values[i], values[0]));
    }
    table.push_back(std::move(row));
  }
  return aligned_table(table);
}

bool differs(const Json& layer) {
  const Json& cycles = layer.at("critical_path_cycles");
  return number_of(cycles.back()) != number_of(cycles.front());
}

std::string layers_table(const Json& comparison, std::size_t most) {
  const Json& layers = comparison.at("layers");
  const auto changed = static_cast<std::size_t>(std::ranges::count_if(layers, differs));
  if (changed == 0)
    return "all layers have equal cycles of the critical path\n";
  Table table{
      heading(comparison, {"layer (cycles of the critical path)", "phase", "cause"}, "difference")};
  for (std::size_t i = 0; i < std::min(most, changed); ++i) {
    const Json& values = layers[i].at("critical_path_cycles");
    std::vector<std::string> row;
    for (const char* key : {"name", "phase", "cause"})
      row.push_back(layers[i].at(key).get<std::string>());
    for (std::size_t k = 0; k < values.size(); ++k) {
      row.push_back(text_of(values[k], "cycles"));
      if (k > 0)
        row.push_back(difference_of(values[k], values[0]));
    }
    table.push_back(std::move(row));
  }
  std::string text = aligned_table(table);
  if (changed > most)
    text += fmt::format("{} more layers differ\n", changed - most);
  return text;
}

std::string settings_table(const Json& comparison) {
  constexpr std::size_t kListed = 30;
  const Json& settings = comparison.at("settings");
  if (settings.empty())
    return "no setting differs\n";
  Table table{heading(comparison, {"setting that differs", "file"}, "")};
  std::erase(table[0], "");
  for (std::size_t i = 0; i < std::min(kListed, settings.size()); ++i) {
    std::vector<std::string> row{settings[i].at("key").get<std::string>(),
                                 settings[i].at("file").get<std::string>()};
    for (const Json& value : settings[i].at("values"))
      row.push_back(value.is_null() ? "-" : clipped(value.get<std::string>(), 40));
    table.push_back(std::move(row));
  }
  std::string text = aligned_table(table);
  if (settings.size() > kListed)
    text += fmt::format("{} more settings differ\n", settings.size() - kListed);
  return text;
}

std::string csv_cell(std::string text) {
  if (text.find_first_of(",\"\n\r") == std::string::npos)
    return text;
  for (std::size_t i = 0; (i = text.find('"', i)) != std::string::npos; i += 2)
    text.insert(i, 1, '"');
  return '"' + text + '"';
}

void add_csv(std::string& csv, const std::string& what, const std::string& name,
             const std::string& unit, const Json& values) {
  csv += what + ',' + csv_cell(name) + ',' + unit;
  for (const Json& value : values)
    csv += ',' + (value.is_null() ? std::string() : json_text(value));
  csv += '\n';
}

} // namespace

std::string result_comparison_table(const Json& comparison, std::size_t layers) {
  std::string text;
  const Json& runs = comparison.at("runs");
  for (std::size_t i = 0; i < runs.size(); ++i)
    text += fmt::format("{}: {} ({})\n", static_cast<char>('A' + i % 26),
                        printable(runs[i].at("name").get<std::string>()),
                        printable(runs[i].at("label").get<std::string>()));
  text += '\n' + totals_table(comparison);
  const bool cluster = !comparison.contains("phases");
  text += '\n' + differences_table(comparison, cluster ? "cause (ns)" : "cause (cycles)",
                                   comparison.at("causes"), "name", "values");
  if (!cluster) {
    text += '\n' + differences_table(comparison, "phase (cycles of the critical path)",
                                     comparison.at("phases"), "phase", "critical_path_cycles");
    text += '\n' + layers_table(comparison, layers);
  }
  return text + '\n' + settings_table(comparison);
}

std::string result_comparison_csv(const Json& comparison) {
  std::string csv = "what,name,unit";
  for (const Json& run : comparison.at("runs"))
    csv += ',' + csv_cell(run.at("label").get<std::string>());
  csv += '\n';
  for (const char* what : {"totals", "causes"}) {
    for (const Json& row : comparison.at(what))
      add_csv(csv, what == std::string("totals") ? "total" : "cause", row.at("name"),
              row.at("unit"), row.at("values"));
  }
  for (const auto& [list, what, name] :
       {std::tuple("phases", "phase", "phase"), std::tuple("layers", "layer", "name")}) {
    const Json rows = comparison.value(list, Json::array());
    for (const Json& row : rows) {
      const std::string label =
          what == std::string("layer")
              ? row.at("phase").get<std::string>() + ' ' + row.at(name).get<std::string>()
              : row.at(name).get<std::string>();
      add_csv(csv, what, label, "cycles", row.at("critical_path_cycles"));
      add_csv(csv, what, label, "pJ", row.at("energy_pj"));
    }
  }
  return csv;
}

} // namespace monet

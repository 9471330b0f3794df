// Prints the closing tables of `monet run` and `monet schedule` from result.json.
#include "base/shared/amounts.hpp"
#include "base/shared/text.hpp"
#include "report/shared/text.hpp"

#include "monet/report/result.hpp"

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include <algorithm>

namespace monet {

namespace {

using Json = nlohmann::ordered_json;

struct TableRow {
  const char* label;
  const char* where;   ///< JSON pointer
  const char* of_step; ///< pointer for a whole step, if it differs
  enum class Unit { count, energy, bytes } unit;
};

#include "report/summary_rows.inc"

std::string cell(const Json& value, TableRow::Unit unit) {
  switch (unit) {
  case TableRow::Unit::count:
    return group_digits(value.get<std::int64_t>());
  case TableRow::Unit::energy:
    return human_energy(value.get<double>());
  case TableRow::Unit::bytes:
    return human_bytes(value.get<std::int64_t>());
  }
  return {};
}

std::int64_t total_macs(const Json& column) {
  const Json& macs = column.at("macs"); // a number for a phase, an object for a step
  return macs.is_object() ? macs.at("total").get<std::int64_t>() : macs.get<std::int64_t>();
}

/// MACs that slices recompute; 0 if the column has no such figure.
std::int64_t recomputed(const Json& column) {
  const Json& macs = column.at("macs");
  return macs.is_object() ? macs.value("recomputed", std::int64_t{0}) : 0;
}

/// Notes on memories that operands bypass, one line each.
std::string bypassed_lines(const Json& bypassed) {
  constexpr std::size_t kNamed = 4;
  std::string text;
  for (std::size_t i = 0; i < std::min(kNamed, bypassed.size()); ++i) {
    const Json& one = bypassed[i];
    text += fmt::format(
        "note: elements of {} bits ({}) bypass '{}' of core '{}', which holds {}: {} operators, "
        "first '{}'\n",
        one.at("element_bits").get<std::int64_t>(), one.at("operand").get<std::string>(),
        printable(one.at("memory").get_ref<const std::string&>()),
        printable(one.at("core").get_ref<const std::string&>()),
        one.at("memory_bits").get<std::int64_t>(), one.at("operators").get<std::int64_t>(),
        printable(one.at("first").get_ref<const std::string&>()));
  }
  if (bypassed.size() > kNamed)
    text +=
        fmt::format("note: and {} more kinds of operands and memories\n", bypassed.size() - kNamed);
  return text;
}

std::string heading(const Json& result) {
  const auto compute_cores =
      std::count_if(result.at("cores").begin(), result.at("cores").end(),
                    [](const Json& core) { return core.at("kind") != "offchip"; });
  std::string text = printable(result.at("name").get_ref<const std::string&>()) + "\n";
  text += fmt::format("{} parameters, {} compute cores",
                      group_digits(result.at("parameters").get<std::int64_t>()), compute_cores);
  const double area = result.at("area_mm2").get<double>();
  if (area > 0) { // 0 if the chip's files contain no area
    text += fmt::format(", {:.5g} mm2", area);
    if (result.contains("hardware") && result.at("hardware").at("peak_power_w").is_number())
      text += fmt::format(", at most {:.4g} W", result["hardware"]["peak_power_w"].get<double>());
  }
  if (result.contains("latency_seconds")) {
    text += ", " + human_duration(result.at("latency_seconds").get<double>(), 5);
  }
  text += "\n";
  if (result.contains("buffers") && result.at("kind") == "training")
    text += buffers_line(result.at("buffers"));
  if (result.contains("bypassed"))
    text += bypassed_lines(result.at("bypassed"));
  return text + "\n";
}

/// Line with the peak live memory if fused tensors are counted slice by slice; empty if the peak is
/// the same.
std::string slices_line(const Json& result) {
  const auto found = result.find("peak_memory_by_slices_bytes");
  if (found == result.end() || *found == result.at("peak_memory_bytes"))
    return {};
  return fmt::format("fused tensors slice by slice: at most {} live at a time\n",
                     human_bytes(found->get<std::int64_t>()));
}

std::string percent(std::int64_t part, std::int64_t whole) {
  return whole > 0
             ? fmt::format("{:.1f} %", 100 * static_cast<double>(part) / static_cast<double>(whole))
             : "";
}

/// Cells of a row of the layer table, after layer and phase.
std::vector<std::string> layer_cells(std::int64_t cycles, std::int64_t latency, const Json* span,
                                     double energy, std::int64_t bytes) {
  return {group_digits(cycles), percent(cycles, latency),
          span != nullptr ? group_digits(span->get<std::int64_t>()) : "", human_energy(energy),
          human_bytes(bytes)};
}

/// Table of the layers with most cycles on the critical path, and one row for all others.
std::string layer_table(const Json& result) {
  constexpr std::size_t kListed = 10;
  const auto latency = result.at("latency_cycles").get<std::int64_t>();
  const std::vector<const Json*> layers = layers_by_critical_path(result.at("layers"));
  std::vector<std::vector<std::string>> table{
      {"layer", "phase", "critical path (cycles)", "share", "span (cycles)", "energy", "off-chip"}};
  const auto add_row = [&](std::vector<std::string> row, const std::vector<std::string>& cells) {
    row.insert(row.end(), cells.begin(), cells.end());
    table.push_back(std::move(row));
  };
  std::int64_t other_cycles = 0;
  std::int64_t other_bytes = 0;
  double other_energy = 0;
  for (std::size_t i = 0; i < layers.size(); ++i) {
    const Json& layer = *layers[i];
    const auto cycles = layer.at("critical_path_cycles").get<std::int64_t>();
    const auto bytes = layer.at("offchip_bytes").get<std::int64_t>();
    const auto energy = layer.at("energy_pj").get<double>();
    if (i < kListed) {
      add_row({layer.at("name").get<std::string>(), layer.at("phase").get<std::string>()},
              layer_cells(cycles, latency, &layer.at("span_cycles"), energy, bytes));
      continue;
    }
    other_cycles += cycles;
    other_bytes += bytes;
    other_energy += energy;
  }
  if (layers.size() > kListed) {
    add_row({fmt::format("{} more", layers.size() - kListed), ""},
            layer_cells(other_cycles, latency, nullptr, other_energy, other_bytes));
  }
  return aligned_table(table);
}

} // namespace

std::vector<const Json*> layers_by_critical_path(const Json& layers) {
  std::vector<const Json*> sorted;
  for (const Json& layer : layers)
    sorted.push_back(&layer);
  std::ranges::stable_sort(sorted, std::ranges::greater{}, [](const Json* layer) {
    return layer->at("critical_path_cycles").get<std::int64_t>();
  });
  return sorted;
}

std::string buffers_line(const Json& buffers) {
  constexpr std::size_t kNamed = 4;
  std::string text = "kept, not trained: ";
  for (std::size_t i = 0; i < std::min(kNamed, buffers.size()); ++i) {
    text += fmt::format("{}{} ({})", i == 0 ? "" : ", ",
                        printable(buffers[i].at("name").get_ref<const std::string&>()),
                        buffers[i].at("why").get<std::string>());
  }
  if (buffers.size() > kNamed)
    text += fmt::format(" and {} more", buffers.size() - kNamed);
  return text + "; trainable: {parameters: [NAME]} trains it\n";
}

std::string summary_table(const Json& result) {
  const bool training = result.at("kind") == "training";
  std::vector<std::pair<std::string, const Json*>> columns;
  if (training) {
    for (const Json& phase : result.at("phases")) {
      columns.emplace_back(phase.at("phase").get<std::string>(), &phase);
    }
  }
  columns.emplace_back(training ? "training step" : "inference", &result);
  if (result.contains("inference"))
    columns.emplace_back("inference alone", &result.at("inference"));

  std::vector<std::vector<std::string>> table{{""}, {"MACs"}};
  for (const auto& [label, column] : columns) {
    table[0].push_back(label);
    table[1].push_back(group_digits(total_macs(*column)));
  }
  if (std::any_of(columns.begin(), columns.end(),
                  [](const auto& c) { return recomputed(*c.second) > 0; })) {
    table.push_back({"  recomputed halos"});
    for (const auto& [label, column] : columns)
      table.back().push_back(group_digits(recomputed(*column)));
  }
  for (const TableRow& row : kSummaryRows) {
    std::vector<std::string> line{row.label};
    const Json::json_pointer where(row.where);
    if (!columns.front().second->contains(where)) // not in every step
      continue;
    const Json::json_pointer of_step(row.of_step);
    for (const auto& [label, column] : columns) {
      const bool has = column->contains(where) || of_step.empty();
      line.push_back(cell(column->value(has ? where : of_step, Json(0)), row.unit));
    }
    table.push_back(std::move(line));
  }
  return heading(result) + aligned_table(table) + slices_line(result) + "\n" + layer_table(result);
}

} // namespace monet

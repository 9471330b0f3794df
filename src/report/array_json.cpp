#include "report/array_json.hpp"

#include "report/json_list.hpp"

#include "monet/hardware/array_modes.hpp"
#include "monet/report/text.hpp"

#include <fmt/core.h>
#include <nlohmann/json.hpp>

namespace monet {

namespace {

using Json = nlohmann::ordered_json;

Json figure_json(const FpgaFigure& figure) {
  return {{"luts", figure.luts}, {"dsps", figure.dsps}, {"source", name_of(figure.source)}};
}

Json fpga_json(const MacDesign& design, std::int64_t units) {
  const FpgaCost cost = fpga_cost(design);
  const auto count = static_cast<double>(units);
  Json json = {{"multiplier", figure_json(cost.multiplier)}};
  if (cost.converter)
    json["converter"] = figure_json(*cost.converter);
  json["accumulator"] = figure_json(cost.accumulator);
  json["unit"] = {{"luts", cost.luts()}, {"dsps", cost.dsps()}};
  json["system"] = {{"units", units},
                    {"luts", count * cost.system_luts()},
                    {"dsps", count * cost.system_dsps()},
                    {"source", name_of(cost.around.source)}};
  return json;
}

Json mac_json(const Core& core) {
  const MacDesign& design = *core.mac;
  Json json = {{"name", name_of(design)},
               {"multiply", name_of(design.multiply)},
               {"variant", name_of(design.variant)},
               {"products", name_of(product_format(design))},
               {"accumulate", name_of(sum_format(design))}};
  if (core.mac_parts) {
    const ArithmeticCost& parts = *core.mac_parts;
    json["energy_pj"] = {{"multiply", parts.multiply_pj},
                         {"convert", parts.convert_pj},
                         {"add", parts.add_pj},
                         {"registers", parts.registers_pj}};
    json["area_mm2"] = {{"multiply", parts.multiply_mm2},
                        {"convert", parts.convert_mm2},
                        {"add", parts.add_mm2},
                        {"registers", parts.registers_mm2}};
  }
  json["fpga"] = fpga_json(design, core.lanes());
  return json;
}

Json mode_json(const Core& core, const ArrayMode& mode, double frequency_hz) {
  Json formats = Json::array();
  for (const TensorFormat& format : mode.formats)
    formats.push_back(name_of(ElementType(format)));
  Json json = {{"formats", std::move(formats)},
               {"products", mode.products},
               {"products_per_cycle", core.lanes() * mode.products},
               {"energy_pj", mode.energy_pj}};
  constexpr double kGiga = 1e9;
  if (frequency_hz > 0) // a product and its addition are two operations
    json["peak_gops"] =
        2 * static_cast<double>(core.lanes() * mode.products) * frequency_hz / kGiga;
  return json;
}

/// Memories once each, those with the weights beside the array's own cells, as ZigZag sums them.
double area_of_zigzag(const Core& core) {
  double area = imc_area_mm2(*core.imc).total();
  for (const Memory& memory : core.memories)
    area += memory.area_mm2;
  return area;
}

/// The parts of an array that computes in memory, by ZigZag's names, and their sum as `total`.
Json imc_parts_json(const ImcParts& parts) {
  Json json = Json::object();
  for (const auto& [name, figure] : parts.named())
    json[std::string(name)] = figure;
  json["total"] = parts.total();
  return json;
}

Json imc_json(const Core& core) {
  const ImcArray& imc = *core.imc;
  const ImcPeak peak = imc_peak(imc);
  return {{"type", name_of(imc.kind)},
          {"columns", imc.columns},
          {"rows", imc.rows},
          {"macros", imc.macros},
          {"activation_bits", imc.activation_bits},
          {"weight_bits", imc.weight_bits},
          {"bits_per_cycle", imc.serial_bits},
          {"adc_bits", imc.adc_bits},
          {"weights_per_element", imc.group_depth()},
          {"cycles_per_mac", imc.cycles_per_wave()},
          {"area_mm2", imc_parts_json(imc_area_mm2(imc))},
          {"zigzag_core_area_mm2", area_of_zigzag(core)},
          {"clock_ns", imc_parts_json(imc_clock_ns(imc))},
          {"peak_energy_per_cycle_pj", imc_parts_json(imc_peak_energy_pj(imc))},
          {"peak_tops", peak.tops},
          {"peak_tops_per_w", peak.tops_per_w},
          {"peak_tops_per_mm2", peak.tops_per_mm2}};
}

void add_imc_rows(const Json& imc, std::vector<std::vector<std::string>>& rows) {
  for (const auto& [name, area] : imc.at("area_mm2").items()) {
    const double energy = imc.at("peak_energy_per_cycle_pj").at(name).get<double>();
    const double delay = imc.at("clock_ns").at(name).get<double>();
    if (area.get<double>() <= 0 && energy <= 0 && delay <= 0)
      continue;
    rows.push_back({"    " + (name == "total" ? "in all" : name), "", "", human_energy(energy), "",
                    fmt::format("{:.4g}", area.get<double>()), fmt::format("{:.4g} ns", delay)});
  }
  rows.push_back(
      {"    peak", "", "", "", "", "",
       fmt::format("{:.4g} TOPS, {:.4g} TOPS/W, {:.4g} TOPS/mm2", imc.at("peak_tops").get<double>(),
                   imc.at("peak_tops_per_w").get<double>(),
                   imc.at("peak_tops_per_mm2").get<double>())});
}

std::string fpga_text(const Json& figure) {
  const double dsps = figure.at("dsps").get<double>();
  return fmt::format("{:.5g} LUT{}{}", figure.at("luts").get<double>(),
                     dsps > 0 ? fmt::format(", {:g} DSP", dsps) : "",
                     figure.contains("source") ? ", " + figure.at("source").get<std::string>()
                                               : "");
}

} // namespace

Json array_json(const Core& core, double frequency_hz) {
  Json json = {{"lanes", core.lanes()},
               {"operation_energy_pj", core.mac_energy_pj},
               {"area_mm2", core.array_area_mm2}};
  if (core.imc != nullptr)
    json["imc"] = imc_json(core);
  if (core.mac)
    json["mac"] = mac_json(core);
  else if (core.automatic_array_cost)
    json["format"] = core.array_format;
  if (!core.modes.empty())
    json["modes"] = json_list(
        core.modes, [&](const ArrayMode& mode) { return mode_json(core, mode, frequency_hz); });
  return json;
}

void add_array_rows(const Json& array, std::vector<std::vector<std::string>>& rows) {
  if (array.contains("imc"))
    add_imc_rows(array.at("imc"), rows);
  if (array.contains("mac")) {
    const Json& fpga = array.at("mac").at("fpga");
    for (const char* part : {"multiplier", "converter", "accumulator", "unit", "system"}) {
      if (fpga.contains(part))
        rows.push_back({fmt::format("    {}", part),
                        part == std::string_view("system")
                            ? fmt::format("{}", fpga.at(part).at("units").get<std::int64_t>())
                            : "",
                        "", "", "", "", "FPGA: " + fpga_text(fpga.at(part))});
    }
  }
  if (!array.contains("modes"))
    return;
  for (const Json& mode : array.at("modes")) {
    std::string formats;
    for (const Json& format : mode.at("formats"))
      formats += (formats.empty() ? "" : ", ") + format.get<std::string>();
    std::string rate;
    if (mode.contains("peak_gops"))
      rate = fmt::format(", {:g} GOPS", mode.at("peak_gops").get<double>());
    constexpr std::size_t kFormatsColumn = 40;
    rows.push_back({"    mode",
                    fmt::format("{}", mode.at("products_per_cycle").get<std::int64_t>()), "",
                    human_energy(mode.at("energy_pj").get<double>()), "", "",
                    clipped(formats, kFormatsColumn) + rate});
  }
}

} // namespace monet

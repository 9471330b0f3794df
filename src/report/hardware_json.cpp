// Writes the area, peak power, arrays and memories of a chip's cores as JSON, for result.json and
// `monet core`, and prints them as a table.
#include "hardware/shared/array_modes.hpp"
#include "hardware/shared/memory_model.hpp"
#include "report/shared/json_list.hpp"
#include "report/shared/text.hpp"

#include "monet/hardware/imc_array.hpp"
#include "monet/report/result.hpp"

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include <vector>

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
  if (frequency_hz > 0) // a multiplication and its addition are two operations
    json["peak_gops"] =
        2 * static_cast<double>(core.lanes() * mode.products) * frequency_hz / kGiga;
  return json;
}

/// Area of a core in mm2 as ZigZag computes it: the array and every memory once, including the
/// memory that holds the weights in addition to the array's cells.
double area_of_zigzag(const Core& core) {
  double area = imc_area_mm2(*core.imc).total();
  for (const Memory& memory : core.memories)
    area += memory.area_mm2;
  return area;
}

/// Parts of an array that computes in memory, by ZigZag's names, and their sum as `total`.
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

/// Array of a core: its unit, modes and FPGA resources. Operations per second are left out if
/// `frequency_hz` is 0.
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

/// Appends the rows for an array's parts, with the columns of hardware_table().
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

/// Figures of the model's table without splitting or repair (tabulated_sram()); empty for memories
/// outside its range.
std::optional<MemoryFigures> in_table(const ModelledMemory& model, const Memory& memory) {
  constexpr std::int64_t kKibibyte = 8192; // bits
  const bool size = memory.size.value >= kKibibyte && memory.size.value <= 32 * 1024 * kKibibyte;
  const bool word = model.word_bits >= 8 && model.word_bits <= 4096;
  if (!size || !word || model.ports > 2 || model.node_nm < 22)
    return std::nullopt;
  return tabulated_sram({memory.size, model.word_bits, model.node_nm, model.ports});
}

Json model_json(const ModelledMemory& model, const Memory& memory) {
  Json json = {{"kind", model.kind}, {"word_bits", model.word_bits}, {"ports", model.ports}};
  if (model.pj_per_bit > 0) {
    json["pj_per_bit"] = model.pj_per_bit;
    return json;
  }
  json["technology_nm"] = model.node_nm;
  json["macros"] = model.macros;
  json["macro_bits"] = static_cast<double>(memory.size.value) / static_cast<double>(model.macros);
  json["macro_word_bits"] =
      static_cast<double>(model.word_bits) / static_cast<double>(model.macros);
  json["wiring_pj"] = model.wiring_pj;
  json["access_ns"] = model.access_ns;
  json["one_array"] = {{"read_energy_pj", model.monolithic_read_pj},
                       {"write_energy_pj", model.monolithic_write_pj},
                       {"area_mm2", model.monolithic_area_mm2}};
  if (const std::optional<MemoryFigures> table = in_table(model, memory)) {
    json["table"] = {{"read_energy_pj", table->read_pj},
                     {"write_energy_pj", table->write_pj},
                     {"area_mm2", table->area_mm2},
                     {"access_ns", table->access_ns}};
  }
  return json;
}

Json core_json(const Core& core, bool offchip, double frequency_hz) {
  const auto memory_json = [&](const Memory& memory) {
    Json json = {{"name", valid_utf8(memory.name)},
                 {"instances", offchip ? 1 : instances(core, memory)},
                 {"size_bits", memory.size.value},
                 {"read_energy_pj", memory.read_energy_pj},
                 {"write_energy_pj", memory.write_energy_pj},
                 {"area_mm2", memory.area_mm2}};
    if (memory.modelled)
      json["model"] = model_json(*memory.modelled, memory);
    return json;
  };
  Json json = {{"name", valid_utf8(core.name)}, {"area_mm2", offchip ? 0 : core.area_mm2()}};
  if (!offchip)
    json["array"] = array_json(core, frequency_hz);
  json["memories"] = json_list(core.memories, memory_json);
  return json;
}

std::string memory_text(const Json& memory) {
  if (!memory.contains("model"))
    return "as in the file";
  const Json& model = memory.at("model");
  const std::string kind = model.at("kind").get<std::string>();
  if (model.contains("pj_per_bit"))
    return fmt::format("{}, {:g} pJ/bit", kind, model.at("pj_per_bit").get<double>());
  const auto macros = model.at("macros").get<std::int64_t>();
  const double node = model.at("technology_nm").get<double>();
  const std::string of =
      macros == 1 ? fmt::format("{} of {} bit words", kind, model.at("word_bits").get<double>())
                  : fmt::format("{} {} macros of {:g} bit words", macros, kind,
                                model.at("macro_word_bits").get<double>());
  return fmt::format("{}, {:g} nm, {:.2g} ns, at most {}", of, node,
                     model.at("access_ns").get<double>(),
                     human_energy(model.at("one_array").at("read_energy_pj").get<double>()));
}

std::string area_text(double area_mm2) {
  return area_mm2 > 0 ? fmt::format("{:.4g}", area_mm2) : "";
}

void add_rows(const Json& core, std::size_t count, std::vector<std::vector<std::string>>& rows) {
  const std::string name = printable(core.at("name").get<std::string>());
  rows.push_back({count > 1 ? fmt::format("{} x {}", count, name) : name, "", "", "", "",
                  area_text(core.at("area_mm2").get<double>()), ""});
  if (core.contains("array")) {
    const Json& array = core.at("array");
    const std::string format =
        array.contains("mac") ? array.at("mac").at("name").get<std::string>()
        : array.contains("imc")
            ? array.at("imc").at("type").get<std::string>() + ", in memory; the least of a MAC"
            : array.value("format", "");
    rows.push_back({"  array", fmt::format("{}", array.at("lanes").get<std::int64_t>()), "",
                    human_energy(array.at("operation_energy_pj").get<double>()), "",
                    area_text(array.at("area_mm2").get<double>()),
                    format.empty() ? "as in the file" : printable(format)});
    add_array_rows(array, rows);
  }
  for (const Json& memory : core.at("memories")) {
    rows.push_back({"  " + printable(memory.at("name").get<std::string>()),
                    fmt::format("{}", memory.at("instances").get<std::int64_t>()),
                    fmt::format("{}", memory.at("size_bits").get<std::int64_t>()),
                    human_energy(memory.at("read_energy_pj").get<double>()),
                    human_energy(memory.at("write_energy_pj").get<double>()),
                    area_text(memory.at("area_mm2").get<double>()), memory_text(memory)});
  }
}

} // namespace

Json hardware_json(const Chip& chip) {
  Json cores = Json::array();
  for (std::size_t i = 0; i < chip.cores.size(); ++i)
    cores.push_back(core_json(chip.cores[i], chip.offchip == CoreId(i), chip.frequency_hz));
  const std::optional<double> power = peak_power_w(chip);
  return {{"area_mm2", chip.area_mm2()},
          {"peak_power_w", power ? Json(*power) : Json(nullptr)},
          {"cores", std::move(cores)}};
}

std::string hardware_table(const Json& hardware) {
  std::vector<std::vector<std::string>> rows{
      {"part", "number", "bits each", "read or op.", "write", "mm2 each", "figures"}};
  const Json& cores = hardware.at("cores");
  for (std::size_t i = 0; i < cores.size();) {
    std::size_t count = 1;
    while (i + count < cores.size() && cores[i + count] == cores[i])
      ++count;
    add_rows(cores[i], count, rows);
    i += count;
  }
  std::string text = aligned_table(rows);
  text += fmt::format("area {:.5g} mm2", hardware.at("area_mm2").get<double>());
  if (!hardware.at("peak_power_w").is_null())
    text += fmt::format(", peak power {:.4g} W", hardware.at("peak_power_w").get<double>());
  return text + "\n";
}

} // namespace monet

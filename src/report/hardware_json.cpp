#include "report/array_json.hpp"
#include "report/json_list.hpp"

#include "monet/hardware/memory_model.hpp"
#include "monet/report/hardware_result.hpp"
#include "monet/report/text.hpp"

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include <vector>

namespace monet {

namespace {

using Json = nlohmann::ordered_json;

/// What the model's table says, neither split nor repaired, of memories within its range.
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

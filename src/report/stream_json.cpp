// JSON and table of `monet schedule --model stream-coala`; stream_result.hpp lists the keys.
#include "base/shared/text.hpp"
#include "report/shared/json_list.hpp"
#include "report/shared/stream_result.hpp"
#include "report/shared/text.hpp"

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>

namespace monet {

namespace {

using Json = nlohmann::ordered_json;
using stream::Cause;

/// Number as a JSON integer if it is whole: times are fractional only if costs are.
Json number(double value) {
  constexpr double kExact = 9007199254740992.0; // 2^53
  if (std::floor(value) == value && std::abs(value) < kExact)
    return static_cast<std::int64_t>(value);
  return value;
}

Json stream_energy_json(const stream::EnergyTerms& energy) {
  Json json = {{"onchip_pj", energy.onchip_pj}};
  static constexpr std::array<const char*, stream::kCauses> kNames{"offchip", "eviction", "sink",
                                                                   "core_to_core"};
  for (std::size_t cause = 0; cause < stream::kCauses; ++cause) {
    json[fmt::format("{}_link_pj", kNames[cause])] = energy.link_pj[cause];
    json[fmt::format("{}_memory_pj", kNames[cause])] = energy.memory_pj[cause];
  }
  return json;
}

Json stream_cores_json(const Chip& chip, const stream::Result& result) {
  std::vector<double> busy(chip.cores.size(), 0);
  std::vector<std::size_t> tiles(chip.cores.size(), 0);
  for (const stream::TileRun& run : result.runs) {
    busy[run.core.index()] += run.end - run.start;
    ++tiles[run.core.index()];
  }
  Json cores = Json::array();
  for (std::size_t core = 0; core < chip.cores.size(); ++core) {
    cores.push_back({{"id", core},
                     {"name", valid_utf8(chip.cores[core].name)},
                     {"tiles", tiles[core]},
                     {"busy_cycles", number(busy[core])}});
  }
  return cores;
}

Json stream_layers_json(const stream::Workload& workload) {
  return json_list(workload.layers, [](const stream::Layer& layer) -> Json {
    return {{"id", layer.id},
            {"name", valid_utf8(layer.name)},
            {"type", valid_utf8(layer.type)},
            {"stack", layer.stack},
            {"tiles", layer.tiles}};
  });
}

Json tiles_json(const stream::Workload& workload, const stream::Costs& costs,
                const stream::Result& result) {
  Json tiles = Json::array();
  for (std::uint32_t t = 0; t < workload.tiles.size(); ++t) {
    const stream::Tile& tile = workload.tiles[t];
    const stream::Layer& layer = workload.layers[tile.layer];
    const stream::TileRun& run = result.runs[t];
    const stream::TileCost& cost = costs.of(t);
    Json row = {{"id", layer.id},
                {"sub_id", tile.sub},
                {"name", valid_utf8(layer.name)},
                {"core", run.core.index()},
                {"start", number(run.start)},
                {"runtime", number(cost.runtime)},
                {"end", number(run.end)},
                {"onchip_energy", cost.onchip_pj},
                {"offchip_energy", cost.offchip_pj}};
    if (!cost.streamed.empty())
      row["too_large_operands"] =
          json_list(cost.streamed, [](MemoryOperand operand) { return name_of(operand); });
    tiles.push_back(std::move(row));
  }
  return tiles;
}

Json events_json(const stream::Workload& workload, const Chip& chip, const stream::Result& result) {
  return json_list(result.events, [&](const stream::LinkEvent& event) -> Json {
    return {{"link", valid_utf8(chip.links[event.link.index()].name)},
            {"type", event.kind == stream::LinkEvent::Kind::block ? "block" : "transfer"},
            {"start", number(event.start)},
            {"end", number(event.end)},
            {"energy", event.energy_pj},
            {"activity", event.bandwidth},
            {"tensor", workload.name_of(workload.tensors[event.tensor])},
            {"bits", event.bits.value},
            {"sender", event.sender.index()},
            {"receiver", event.receiver.index()}};
  });
}

Json peaks_json(const stream::Result& result) {
  return json_list(result.peaks, [](const stream::MemoryPeak& peak) -> Json {
    return {{"memory", valid_utf8(peak.memory)},
            {"cores", json_list(peak.cores, [](CoreId core) { return core.index(); })},
            {"peak_bits", peak.peak.value},
            {"capacity_bits", peak.capacity.value}};
  });
}

void add_notes(const std::vector<stream::Note>& notes, Json& json) {
  for (const stream::Note& note : notes) {
    json.push_back(
        {{"name", note.name}, {"node", valid_utf8(note.node)}, {"what", valid_utf8(note.what)}});
  }
}

/// Lines with the first note of each name, and the number of its further notes.
std::string notes_text(const Json& notes) {
  std::string text;
  std::vector<std::string> names;
  for (const Json& note : notes) {
    const auto& name = note.at("name").get_ref<const std::string&>();
    if (std::find(names.begin(), names.end(), name) != names.end())
      continue;
    names.push_back(name);
    const auto count = std::count_if(notes.begin(), notes.end(),
                                     [&](const Json& other) { return other.at("name") == name; });
    text += fmt::format("\nnote ({}): {}: {}", name, printable(note.at("node").get<std::string>()),
                        printable(note.at("what").get<std::string>()));
    if (count > 1)
      text += fmt::format(" (and {} more, see --json)", count - 1);
    text += "\n";
  }
  return text;
}

} // namespace

Json stream_json(const stream::Workload& workload, const Chip& chip, const stream::Costs& costs,
                 const stream::Result& result) {
  Json json = {{"model", "stream-coala"},
               {"chip", valid_utf8(chip.name)},
               {"latency_cycles", number(result.latency)},
               {"energy_pj", result.energy.total_pj()},
               {"energy", stream_energy_json(result.energy)},
               {"cores", stream_cores_json(chip, result)},
               {"memory_peaks", peaks_json(result)},
               {"layers", stream_layers_json(workload)},
               {"tiles", tiles_json(workload, costs, result)},
               {"link_events", events_json(workload, chip, result)}};
  json["notes"] = Json::array();
  add_notes(workload.notes, json["notes"]);
  add_notes(costs.notes, json["notes"]);
  add_notes(result.notes, json["notes"]);
  return json;
}

std::string stream_table(const Json& result) {
  const auto of = [](const Json& values, const char* key) { return values.at(key).get<double>(); };
  const Json& energy = result.at("energy");
  const double latency = of(result, "latency_cycles");
  std::string text = printable(result.at("name").get<std::string>()) + "\n";
  text += fmt::format("{} tiles in {} layers, as the reference scheduler Stream\n\n",
                      group_digits(static_cast<std::int64_t>(result.at("tiles").size())),
                      result.at("layers").size());
  std::vector<std::vector<std::string>> rows{{"", "inference"}};
  rows.push_back({"latency (cycles)", std::floor(latency) == latency
                                          ? group_digits(static_cast<std::int64_t>(latency))
                                          : fmt::format("{:.2f}", latency)});
  rows.push_back({"energy", human_energy(of(result, "energy_pj"))});
  rows.push_back({"  on-chip", human_energy(of(energy, "onchip_pj"))});
  for (const auto& [label, key] :
       {std::pair{"  off-chip", "offchip"}, std::pair{"  evictions", "eviction"},
        std::pair{"  outputs", "sink"}, std::pair{"  core to core", "core_to_core"}}) {
    rows.push_back({label, human_energy(of(energy, fmt::format("{}_link_pj", key).c_str()) +
                                        of(energy, fmt::format("{}_memory_pj", key).c_str()))});
  }
  text += aligned_table(rows) + "\n";
  std::vector<std::vector<std::string>> peaks{{"outermost memory", "peak", "capacity"}};
  for (const Json& peak : result.at("memory_peaks")) {
    std::string cores;
    for (const Json& core : peak.at("cores"))
      cores += fmt::format("{}{}", cores.empty() ? "" : ", ", core.get<std::size_t>());
    const auto bytes = [&](const char* key) {
      return human_bytes(bytes_of({peak.at(key).get<std::int64_t>()}));
    };
    peaks.push_back(
        {fmt::format("{} (core {})", printable(peak.at("memory").get<std::string>()), cores),
         bytes("peak_bits"), bytes("capacity_bits")});
  }
  text += aligned_table(peaks);
  text += notes_text(result.at("notes"));
  return text;
}

} // namespace monet

// The JSON of one modelled step; docs/result.md describes every key.
#include "ledger.hpp"

#include "monet/base/errors.hpp"
#include "monet/report/result.hpp"
#include "monet/report/text.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <algorithm>

namespace monet {

namespace {

using Json = nlohmann::ordered_json;

double picojoules(Energy energy) {
  return energy.picojoules().value;
}

EnergySplit& operator+=(EnergySplit& a, const EnergySplit& b) {
  a.compute += b.compute;
  a.onchip_memory += b.onchip_memory;
  a.links += b.links;
  a.offchip += b.offchip;
  return a;
}

Json energy_json(const EnergySplit& energy) {
  return {{"compute_pj", picojoules(energy.compute)},
          {"onchip_memory_pj", picojoules(energy.onchip_memory)},
          {"links_pj", picojoules(energy.links)},
          {"offchip_pj", picojoules(energy.offchip)}};
}

std::int64_t sum_of(const OwnerBytes& bytes) {
  std::int64_t sum = 0;
  for (const std::int64_t b : bytes)
    sum += b;
  return sum;
}

std::string owner_key(std::size_t owner) {
  return std::string(name_of(static_cast<MemoryOwner>(owner))) + "_bytes";
}

Json memory_json(const MemorySample& sample) {
  Json json = Json::object();
  for (std::size_t i = 0; i < sample.live.size(); ++i)
    json[owner_key(i)] = sample.live[i];
  json["peak_cycle"] = sample.time.value;
  return json;
}

/// The largest sample that holds inside [start, end), the first of equals; cut to begin at `start`.
MemorySample peak_between(const std::vector<MemorySample>& live, Cycles start, Cycles end) {
  const auto after = [](Cycles time, const MemorySample& sample) { return time < sample.time; };
  auto at = std::upper_bound(live.begin(), live.end(), start, after);
  MemorySample peak{start, {}};
  if (at != live.begin())
    peak.live = std::prev(at)->live;
  for (; at != live.end() && at->time < end; ++at) {
    if (sum_of(at->live) > sum_of(peak.live))
      peak = *at;
  }
  return peak;
}

std::string_view name_of_kind(CoreKind kind) {
  switch (kind) {
  case CoreKind::array:
    return "array";
  case CoreKind::vector:
    return "vector";
  case CoreKind::pooling:
    return "pooling";
  case CoreKind::offchip:
    return "offchip";
  }
  throw InternalError("unknown core kind");
}

double share(Cycles part, Cycles whole) {
  return whole.value > 0 ? static_cast<double>(part.value) / static_cast<double>(whole.value) : 0.0;
}

Json phases_json(const StepResult& result, const Ledger& ledger) {
  const std::vector<Operator>& ops = result.step->graph.operators();
  Json phases = Json::array();
  EnergySplit booked;
  for (const PhaseSpan& span : result.timeline->phases) {
    EnergySplit energy;
    std::int64_t mac_count = 0;
    for (std::size_t i = 0; i < ops.size(); ++i) {
      if (ops[i].phase != span.phase)
        continue;
      energy += ledger.layers[i].energy;
      mac_count += macs(ops[i].nest);
    }
    booked += energy;
    const MemorySample peak = peak_between(result.timeline->live, span.start, span.end);
    phases.push_back({{"phase", name_of(span.phase)},
                      {"latency_cycles", (span.end - span.start).value},
                      {"energy_pj", picojoules(energy.total())},
                      {"macs", mac_count},
                      {"peak_memory_bytes", sum_of(peak.live)},
                      {"memory", memory_json(peak)},
                      {"energy", energy_json(energy)}});
  }
  internal_check(booked.total() == energy_of(*result.timeline).total(),
                 "energy by phase does not add up to the total");
  return phases;
}

Json cores_json(const Ledger& ledger, const Chip& chip, Cycles makespan) {
  Json cores = Json::array();
  for (std::size_t i = 0; i < chip.cores.size(); ++i) {
    const CoreSums& sums = ledger.cores[i];
    const bool offchip = chip.offchip == CoreId(i);
    cores.push_back({{"id", i},
                     {"name", valid_utf8(chip.cores[i].name)},
                     {"kind", name_of_kind(offchip ? CoreKind::offchip : chip.cores[i].kind)},
                     {"busy_cycles", sums.busy.value},
                     {"utilisation", share(sums.busy, makespan)},
                     {"energy_pj", picojoules(sums.energy)},
                     {"tiles", sums.tiles},
                     {"peak_memory_bytes", bytes_of(sums.peak)},
                     {"capacity_bytes", bytes_of(capacity_of(chip, CoreId(i)))}});
  }
  return cores;
}

Json links_json(const Ledger& ledger, const Chip& chip, Cycles makespan) {
  Json links = Json::array();
  for (std::size_t i = 0; i < chip.links.size(); ++i) {
    const LinkSums& sums = ledger.links[i];
    links.push_back({{"id", i},
                     {"name", valid_utf8(chip.links[i].name)},
                     {"busy_cycles", sums.busy.value},
                     {"utilisation", share(sums.busy, makespan)},
                     {"bits", sums.bits.value},
                     {"energy_pj", picojoules(sums.energy)}});
  }
  return links;
}

Json layers_json(const Graph& graph, const Ledger& ledger) {
  Json layers = Json::array();
  for (std::size_t i = 0; i < graph.operators().size(); ++i) {
    const Operator& op = graph.operators()[i];
    const LayerSums& sums = ledger.layers[i];
    Json cores = Json::array();
    for (const CoreId core : sums.cores)
      cores.push_back(core.value);
    Json dims = Json::object();
    for (const LoopDim& dim : op.nest.dims)
      dims[valid_utf8(dim.name)] = dim.size;
    layers.push_back({{"name", valid_utf8(op.name)},
                      {"op_type", valid_utf8(op.op_type)},
                      {"phase", name_of(op.phase)},
                      {"macs", macs(op.nest)},
                      {"latency_cycles", (sums.end - sums.start).value},
                      {"energy_pj", picojoules(sums.energy.total())},
                      {"start_cycle", sums.start.value},
                      {"end_cycle", sums.end.value},
                      {"cores", std::move(cores)},
                      {"offchip_bytes", bytes_of(sums.offchip)},
                      {"energy", energy_json(sums.energy)},
                      {"dims", std::move(dims)}});
    if (!sums.variants.empty())
      layers.back()["variant"] = fmt::format("{}", fmt::join(sums.variants, ", "));
  }
  return layers;
}

Json timeline_json(const StepResult& result) {
  const Timeline& timeline = *result.timeline;
  Json tensors = Json::array();
  for (const Tensor& tensor : result.step->graph.tensors())
    tensors.push_back(valid_utf8(tensor.name));
  Json runs = Json::array();
  for (const TileRun& run : timeline.runs) {
    runs.push_back(Json::array({run.core.value, run.op.value, run.start.value, run.end.value}));
  }
  Json transfers = Json::array();
  for (const Transfer& t : timeline.transfers) {
    const Route& route = timeline.route_of(t);
    Json links = Json::array();
    for (const LinkId link : route.links)
      links.push_back(link.value);
    transfers.push_back(Json::array({static_cast<int>(t.kind), std::move(links), t.op.value,
                                     t.start.value, t.end.value, timeline.bits_of(t).value,
                                     route.from.value, route.to.front().value, t.tensor.value}));
  }
  Json cycles = Json::array();
  std::array<Json, kMemoryOwners> bytes;
  bytes.fill(Json::array());
  for (const MemorySample& sample : timeline.live) {
    cycles.push_back(sample.time.value);
    for (std::size_t i = 0; i < bytes.size(); ++i)
      bytes[i].push_back(sample.live[i]);
  }
  Json memory = {{"cycles", std::move(cycles)}};
  for (std::size_t i = 0; i < bytes.size(); ++i)
    memory[owner_key(i)] = std::move(bytes[i]);
  return {{"tensors", std::move(tensors)},
          {"runs", std::move(runs)},
          {"transfers", std::move(transfers)},
          {"memory", std::move(memory)}};
}

} // namespace

Json step_json(const StepResult& result, const Chip& chip) {
  const Timeline& timeline = *result.timeline;
  const Graph& graph = result.step->graph;
  const Ledger ledger = make_ledger(result, chip);
  const EnergySplit energy = energy_of(timeline);
  const MacSplit mac_split = count_macs(graph);
  Json json = {{"kind", result.step->training ? "training" : "inference"},
               {"latency_cycles", timeline.makespan.value},
               {"energy_pj", picojoules(energy.total())},
               {"peak_memory_bytes", sum_of(timeline.peak.live)},
               {"area_mm2", chip.area_mm2()}};
  if (chip.frequency_hz > 0) {
    json["latency_seconds"] = static_cast<double>(timeline.makespan.value) / chip.frequency_hz;
  }
  json["parameters"] = parameter_count(graph);
  json["macs"] = {
      {"forward", mac_split.forward},
      {"backward_input", mac_split.backward_input},
      {"backward_weight", mac_split.backward_weight},
      {"total", mac_split.forward + mac_split.backward_input + mac_split.backward_weight}};
  json["memory"] = memory_json(timeline.peak);
  json["energy"] = energy_json(energy);
  json["phases"] = phases_json(result, ledger);
  json["cores"] = cores_json(ledger, chip, timeline.makespan);
  json["links"] = links_json(ledger, chip, timeline.makespan);
  json["layers"] = layers_json(graph, ledger);
  json["timeline"] = timeline_json(result);
  return json;
}

namespace {

template <class Map>
Json strings_json(const Map& strings) {
  Json json = Json::object();
  for (const auto& [key, value] : strings)
    json[valid_utf8(key)] = valid_utf8(value);
  return json;
}

} // namespace

Json provenance_json(const Provenance& provenance) {
  return {{"version", provenance.version},
          {"git_hash", provenance.git_hash},
          {"seed", provenance.seed},
          {"inputs", strings_json(provenance.input_hashes)},
          {"options", strings_json(provenance.options)}};
}

Json result_json(const std::string& name, const StepResult& step, const StepResult* inference,
                 const Chip& chip, const Provenance& provenance) {
  Json json = {{"schema_version", 1}, {"name", valid_utf8(name)}, {"chip", valid_utf8(chip.name)}};
  json.update(step_json(step, chip));
  if (inference != nullptr)
    json["inference"] = step_json(*inference, chip);
  json["provenance"] = provenance_json(provenance);
  return json;
}

} // namespace monet

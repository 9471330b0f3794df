// Writes the JSON of one modelled step, the main part of result.json; docs/reference/result.md
// describes every key.
#include "hardware/shared/array_modes.hpp"
#include "report/ledger.hpp"
#include "report/shared/json_list.hpp"
#include "report/shared/text.hpp"
#include "report/shared/written.hpp"
#include "report/timeline_json.hpp"
#include "workload/shared/operators.hpp"

#include "monet/base/errors.hpp"
#include "monet/model/model_step.hpp"
#include "monet/report/result.hpp"
#include "monet/schedule/schedule.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <map>
#include <numeric>

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
  a.leakage += b.leakage;
  return a;
}

Json energy_json(const EnergySplit& energy) {
  return {{"compute_pj", picojoules(energy.compute)},
          {"onchip_memory_pj", picojoules(energy.onchip_memory)},
          {"links_pj", picojoules(energy.links)},
          {"offchip_pj", picojoules(energy.offchip)},
          {"leakage_pj", picojoules(energy.leakage)}};
}

std::string owner_key(std::size_t owner) {
  return std::string(name_of(static_cast<MemoryOwner>(owner))) + "_bytes";
}

Json memory_json(const MemorySample& sample, std::size_t owners) {
  Json json = Json::object();
  for (std::size_t i = 0; i < owners; ++i)
    json[owner_key(i)] = sample.live[i];
  json["peak_cycle"] = sample.time.value;
  return json;
}

/// Sum over an array of cycles.
template <std::size_t N>
Cycles sum_of(const std::array<Cycles, N>& cycles) {
  return std::accumulate(cycles.begin(), cycles.end(), Cycles{});
}

/// Largest memory sample valid within [start, end), the earliest of equal ones. A sample that
/// begins before `start` is moved to `start`.
MemorySample peak_between(const std::vector<MemorySample>& live, Cycles start, Cycles end) {
  const auto after = [](Cycles time, const MemorySample& sample) { return time < sample.time; };
  auto at = std::upper_bound(live.begin(), live.end(), start, after);
  MemorySample peak{start, {}};
  if (at != live.begin())
    peak.live = std::prev(at)->live;
  for (; at != live.end() && at->time < end; ++at) {
    if (total(at->live) > total(peak.live))
      peak = *at;
  }
  return peak;
}

double share(Cycles part, Cycles whole) {
  return whole.value > 0 ? static_cast<double>(part.value) / static_cast<double>(whole.value) : 0.0;
}

/// Leakage energy until a time, proportional to its part of the makespan.
Energy leaked(const Timeline& timeline, Cycles until) {
  const Energy all = energy_of(timeline).leakage;
  if (until >= timeline.makespan)
    return all;
  const double part =
      static_cast<double>(until.value) / static_cast<double>(timeline.makespan.value);
  return {static_cast<std::int64_t>(static_cast<double>(all.units) * part)};
}

/// Phase that an operator is counted in: recomputation belongs to the backward phase.
Phase span_of(const Operator& op) {
  return op.phase == Phase::recompute ? Phase::backward : op.phase;
}

/// Number of cycles in which a tile of the phase runs. Phases overlap, and the span of a phase
/// begins where the previous one ends, so a busy phase may have an empty span.
Cycles working(const StepResult& result, Phase phase) {
  Cycles sum;
  Cycles end;
  for (const TileRun& run : result.timeline->runs) { // sorted by start
    if (span_of(result.step->graph.op(run.op)) != phase || run.end <= end)
      continue;
    sum = sum + (run.end - std::max(run.start, end));
    end = run.end;
  }
  return sum;
}

Json phases_json(const StepResult& result, const Ledger& ledger,
                 const std::vector<LimitCycles>& on_path) {
  const std::vector<Operator>& ops = result.step->graph.operators();
  Json phases = Json::array();
  EnergySplit booked;
  Cycles explained;
  const std::vector<Cycles> latencies = phase_latencies(*result.timeline, *result.step);
  for (std::size_t p = 0; p < latencies.size(); ++p) {
    const PhaseSpan& span = result.timeline->phases[p];
    EnergySplit energy;
    LimitCycles path_cycles{};
    std::int64_t mac_count = 0;
    for (std::size_t i = 0; i < ops.size(); ++i) {
      if (span_of(ops[i]) != span.phase)
        continue;
      energy += ledger.layers[i].energy;
      for (std::size_t k = 0; k < kLimits; ++k)
        path_cycles[k] += on_path[i][k];
      mac_count += macs(ops[i].nest);
    }
    energy.leakage = leaked(*result.timeline, span.end) - leaked(*result.timeline, span.start);
    booked += energy;
    explained += sum_of(path_cycles);
    const MemorySample peak = peak_between(result.timeline->live, span.start, span.end);
    phases.push_back({{"phase", name_of(span.phase)},
                      {"latency_cycles", latencies[p].value},
                      {"critical_path_cycles", sum_of(path_cycles).value},
                      {"busy_cycles", working(result, span.phase).value},
                      {"energy_pj", picojoules(energy.total())},
                      {"macs", mac_count},
                      {"peak_memory_bytes", total(peak.live)},
                      {"memory", memory_json(peak, reported_owners(*result.step))},
                      {"energy", energy_json(energy)},
                      {"critical_path", cycles_json<Limit>(path_cycles)}});
  }
  internal_check(booked.total() == energy_of(*result.timeline).total(),
                 "energy by phase does not add up to the total");
  internal_check(explained == result.timeline->makespan,
                 "the critical path by phase does not add up to the latency");
  return phases;
}

/// MACs of a core as a fraction of what its multipliers could compute in the makespan.
double mac_share(const CoreSums& sums, const Core& core, Cycles makespan) {
  const double most = max_products(core) * static_cast<double>(makespan.value);
  return most > 0 ? static_cast<double>(sums.macs) / most : 0.0;
}

Json cores_json(const Ledger& ledger, const Chip& chip, Cycles makespan) {
  Json cores = Json::array();
  for (std::size_t i = 0; i < chip.cores.size(); ++i) {
    const CoreSums& sums = ledger.cores[i];
    const bool offchip = chip.offchip == CoreId(i);
    cores.push_back({{"id", i},
                     {"name", valid_utf8(chip.cores[i].name)},
                     {"kind", name_of(offchip ? CoreKind::offchip : chip.cores[i].kind)},
                     {"busy_cycles", sums.busy.value},
                     {"utilisation", share(sums.busy, makespan)},
                     {"mac_utilisation", mac_share(sums, chip.cores[i], makespan)},
                     {"energy_pj", picojoules(sums.energy)},
                     {"tiles", sums.tiles},
                     {"peak_memory_bytes", bytes_of(sums.peak)},
                     {"capacity_bytes", bytes_of(capacity_of(chip, CoreId(i)))}});
  }
  return cores;
}

/// Link or port: its time in use, and the fraction of its bandwidth that is used over the step.
Json link_json(std::size_t id, const std::string& name, const LinkSums& sums,
               std::int64_t bandwidth, Cycles makespan) {
  const double most = static_cast<double>(bandwidth) * static_cast<double>(makespan.value);
  return {{"id", id},
          {"name", valid_utf8(name)},
          {"bandwidth_bits_per_cycle", bandwidth},
          {"busy_cycles", sums.busy.value},
          {"utilisation", share(sums.busy, makespan)},
          {"bandwidth_utilisation", most > 0 ? static_cast<double>(sums.bits.value) / most : 0.0},
          {"bits", sums.bits.value},
          {"energy_pj", picojoules(sums.energy)}};
}

Json links_json(const Ledger& ledger, const Chip& chip, Cycles makespan) {
  Json links = Json::array();
  for (std::size_t i = 0; i < chip.links.size(); ++i) {
    const Link& link = chip.links[i];
    links.push_back(
        link_json(i, link.name, ledger.links[i], link.bandwidth_bits_per_cycle, makespan));
  }
  return links;
}

/// Ports of the off-chip memory: one shared port, or a read port and a write port.
Json ports_json(const Ledger& ledger, const Chip& chip, Cycles makespan) {
  Json ports = Json::array();
  if (!chip.offchip)
    return ports;
  const OffchipPort port = offchip_port(chip);
  const std::string name = chip.cores[chip.offchip->index()].name;
  ports.push_back(link_json(0, name + (port.shared ? " port" : " read port"), ledger.ports[0],
                            port.read_bits_per_cycle, makespan));
  if (!port.shared) {
    ports.push_back(
        link_json(1, name + " write port", ledger.ports[1], port.write_bits_per_cycle, makespan));
  }
  return ports;
}

Json layers_json(const Graph& graph, const Ledger& ledger,
                 const std::vector<LimitCycles>& on_path) {
  Json layers = Json::array();
  for (std::size_t i = 0; i < graph.operators().size(); ++i) {
    const Operator& op = graph.operators()[i];
    const LayerSums& sums = ledger.layers[i];
    const Cycles busy = sum_of(sums.causes);
    Json dims = Json::object();
    for (const LoopDim& dim : op.nest.dims)
      dims[valid_utf8(dim.name)] = dim.size;
    layers.push_back(
        {{"name", valid_utf8(op.name)},
         {"op_type", valid_utf8(op.op_type)},
         {"phase", name_of(op.phase)},
         {"macs", macs(op.nest)},
         {"critical_path_cycles", sum_of(on_path[i]).value},
         {"span_cycles", (sums.end - sums.start).value},
         {"busy_cycles", busy.value},
         {"utilisation", share(sums.causes[static_cast<std::size_t>(RunCause::work)], busy)},
         {"energy_pj", picojoules(sums.energy.total())},
         {"start_cycle", sums.start.value},
         {"end_cycle", sums.end.value},
         {"cores", json_list(sums.cores, [](CoreId core) { return core.value; })},
         {"offchip_bytes", bytes_of(sums.offchip)},
         {"energy", energy_json(sums.energy)},
         {"critical_path", cycles_json<Limit>(on_path[i])},
         {"busy", cycles_json<RunCause>(sums.causes)},
         {"dims", std::move(dims)}});
    if (!sums.variants.empty())
      layers.back()["variant"] = fmt::format("{}", fmt::join(sums.variants, ", "));
  }
  return layers;
}

struct GradientBits {
  bool paired = false;
  Bits x, w, dy, dx, dw, other;

  /// Counter for the bits of `moved` that are transferred for a gradient operator.
  Bits& of(const GradientTensors& tensors, TensorId moved) {
    if (moved == tensors.dy)
      return dy;
    if (moved == tensors.x)
      return x;
    if (moved == tensors.w)
      return w;
    if (moved == tensors.dx)
      return dx;
    return moved == tensors.dw ? dw : other;
  }
};

/// Traffic of gradients with the off-chip memory, one row per product that has a gradient, in the
/// products' order. A row has the product's name, whether one operator computes both gradients, and
/// the bytes that the gradient operators move. Bytes are listed by tensor: X, W, dY, dX, dW, and
/// others that are evicted for these. Empty without gradients.
Json gradient_bytes_json(const StepResult& result, const Chip& chip) {
  const Graph& graph = result.step->graph;
  std::map<OpId, GradientBits> rows; // by product
  for (const Operator& op : graph.operators()) {
    const auto tensors = op.forward_op ? gradient_tensors(op) : std::nullopt;
    if (tensors)
      rows[*op.forward_op].paired |= tensors->dx && tensors->dw;
  }
  for (const Transfer& transfer : result.timeline->transfers) {
    const Operator& op = graph.op(transfer.op);
    const Route& route = result.timeline->route_of(transfer);
    if (!op.forward_op || !chip.offchip ||
        (route.from != *chip.offchip && route.to.front() != *chip.offchip))
      continue;
    if (const auto tensors = gradient_tensors(op))
      rows[*op.forward_op].of(*tensors, transfer.tensor) += result.timeline->bits_of(transfer);
  }
  Json json = Json::array();
  for (const auto& [product, bits] : rows) {
    json.push_back({{"layer", valid_utf8(graph.op(product).name)},
                    {"paired", bits.paired},
                    {"x_bytes", bytes_of(bits.x)},
                    {"w_bytes", bytes_of(bits.w)},
                    {"dy_bytes", bytes_of(bits.dy)},
                    {"dx_bytes", bytes_of(bits.dx)},
                    {"dw_bytes", bytes_of(bits.dw)},
                    {"other_bytes", bytes_of(bits.other)}});
  }
  return json;
}

} // namespace

Json step_json(const StepResult& result, const Chip& chip) {
  const Timeline& timeline = *result.timeline;
  const Graph& graph = result.step->graph;
  const Ledger ledger = make_ledger(result, chip);
  const CriticalPath path = critical_path(timeline, *result.step, chip);
  const std::vector<LimitCycles> on_path = operator_cycles(path, graph.operators().size());
  const EnergySplit energy = energy_of(timeline);
  const MacSplit mac_split = count_macs(graph);
  Json json = {{"kind", result.step->training ? "training" : "inference"},
               {"latency_cycles", timeline.makespan.value},
               {"energy_pj", picojoules(energy.total())},
               {"peak_memory_bytes", total(timeline.peak.live)},
               {"area_mm2", chip.area_mm2()}};
  if (chip.frequency_hz > 0) {
    json["frequency_hz"] = chip.frequency_hz;
    json["latency_seconds"] = static_cast<double>(timeline.makespan.value) / chip.frequency_hz;
  }
  json["parameters"] = parameter_count(graph);
  json["macs"] = {
      {"forward", mac_split.forward},
      {"backward_input", mac_split.backward_input},
      {"backward_weight", mac_split.backward_weight},
      {"total", mac_split.forward + mac_split.backward_input + mac_split.backward_weight}};
  if (const std::int64_t again = result.tiles ? recomputed_macs(*result.tiles, graph) : 0;
      again > 0)
    json["macs"]["recomputed"] = again;
  json["memory"] = memory_json(timeline.peak, reported_owners(*result.step));
  if (result.tiles) {
    if (const auto sliced = peak_by_slices(*result.step, *result.tiles, timeline))
      json["peak_memory_by_slices_bytes"] = total(sliced->live);
  }
  json["energy"] = energy_json(energy);
  json["phases"] = phases_json(result, ledger, on_path);
  json["cores"] = cores_json(ledger, chip, timeline.makespan);
  json["links"] = links_json(ledger, chip, timeline.makespan);
  json["ports"] = ports_json(ledger, chip, timeline.makespan);
  json["bounds"] = bounds_json(result, chip);
  json["critical_path"] = critical_path_json(path);
  json["layers"] = layers_json(graph, ledger, on_path);
  if (Json gradients = gradient_bytes_json(result, chip); !gradients.empty())
    json["backward"] = std::move(gradients);
  json["timeline"] = timeline_json(result, chip);
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

/// Memories that operands bypass: memory, core, operand, bits, number of operators and the first of
/// them.
Json bypassed_json(const StepResult& result, const Chip& chip) {
  Json json = Json::array();
  for (const BypassedMemory& one : bypassed_memories(*result.step, *result.tiles, chip)) {
    json.push_back({{"memory", valid_utf8(one.memory)},
                    {"core", valid_utf8(one.core)},
                    {"operand", name_of(one.operand)},
                    {"element_bits", one.element_bits},
                    {"memory_bits", one.memory_bits},
                    {"operators", one.operators},
                    {"first", valid_utf8(result.step->graph.op(one.first).name)}});
  }
  return json;
}

} // namespace

Json buffers_json(const Graph& graph) {
  Json buffers = Json::array();
  for (const FoundBuffer& buffer : graph.buffers)
    buffers.push_back({{"name", valid_utf8(buffer.name)}, {"why", buffer.why}});
  return buffers;
}

Json provenance_json(const Provenance& provenance) {
  Json json{{"version", provenance.version},
            {"git_hash", provenance.git_hash},
            {"seed", provenance.seed},
            {"inputs", strings_json(provenance.input_hashes)},
            {"options", strings_json(provenance.options)}};
  for (const auto& [file, settings] : provenance.settings)
    json["settings"][valid_utf8(file)] = strings_json(settings);
  return json;
}

Json result_json(const std::string& name, const StepResult& step, const StepResult* inference,
                 const Chip& chip, const Provenance& provenance) {
  Json json = {{"schema_version", 1}, {"name", valid_utf8(name)}, {"chip", valid_utf8(chip.name)}};
  json.update(step_json(step, chip));
  if (inference != nullptr)
    json["inference"] = step_json(*inference, chip);
  json["hardware"] = hardware_json(chip);
  if (!step.step->graph.buffers.empty())
    json["buffers"] = buffers_json(step.step->graph);
  if (Json bypassed = bypassed_json(step, chip); !bypassed.empty())
    json["bypassed"] = std::move(bypassed);
  json["provenance"] = provenance_json(provenance);
  return written(ResultSchema::result, std::move(json));
}

} // namespace monet

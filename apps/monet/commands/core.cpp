// monet core: models every layer of a network on one core, independently of the rest of the chip.
// Calls the core cost model for the tasks of core_layers.cpp.
#include "base/shared/checked.hpp"
#include "base/shared/text.hpp"
#include "commands/commands.hpp"
#include "commands/core_layers.hpp"
#include "pipeline.hpp"
#include "report/shared/text.hpp"

#include "monet/hardware/read_hardware.hpp"
#include "monet/report/result.hpp"

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <deque>
#include <memory>
#include <utility>

namespace monet::cli {

namespace {

struct LayerCost {
  const Layer* layer = nullptr;
  const CoreCost* cost = nullptr;
  const Core* core = nullptr; ///< core in the layer's mode
};

constexpr std::size_t kLayerColumn = 30;
constexpr std::size_t kTypeColumn = 14;
constexpr std::size_t kUnrolledColumn = 20;

std::int64_t mac_count(const CoreProblem& problem) {
  std::int64_t count = problem.compute == ComputeKind::mac ? 1 : 0;
  for (const LoopDim& dim : problem.dims)
    count = checked_multiply(count, dim.size);
  return count;
}

Json loops_json(const std::vector<MappedLoop>& loops, const CoreProblem& problem) {
  Json json = Json::array();
  for (const MappedLoop& loop : loops)
    json.push_back(Json::array({valid_utf8(problem.dims.at(loop.dim).name), loop.size}));
  return json;
}

Json spatial_json(const LayerCost& layer) {
  Json json = Json::object();
  const Core& core = *layer.core;
  const SpatialMapping& spatial = layer.cost->spatial;
  for (std::size_t i = 0; i < spatial.unrolled.size() && i < core.array.size(); ++i)
    json[valid_utf8(core.array[i].name)] = loops_json(spatial.unrolled[i], layer.layer->problem);
  return json;
}

std::string role(const Layer& layer, std::size_t operand) {
  return operand < layer.roles.size() ? valid_utf8(layer.roles[operand]) : "";
}

Json precision_json(const Layer& layer) {
  Json json = Json::array();
  for (std::size_t i = 0; i < layer.problem.operands.size(); ++i) {
    const ProblemOperand& operand = layer.problem.operands[i];
    json.push_back({{"operand", role(layer, i)},
                    {"bits", operand.bits},
                    {"partial_bits", operand.partial_bits}});
  }
  return json;
}

/// Loops by operand and memory, memories bottom-up: the loops that each memory holds data for.
Json levels_of_loops_json(const LayerCost& layer) {
  Json json = Json::array();
  const auto& by_operand = layer.cost->temporal.by_operand;
  for (std::size_t i = 0; i < by_operand.size(); ++i) {
    std::vector<std::string> memories;
    for (const LevelEnergy& level : layer.cost->levels) {
      if (level.operand == i)
        memories.push_back(valid_utf8(level.memory));
    }
    Json levels = Json::array();
    for (std::size_t l = 0; l < by_operand[i].size(); ++l) {
      levels.push_back({{"memory", l < memories.size() ? memories[l] : "off-chip"},
                        {"loops", loops_json(by_operand[i][l], layer.layer->problem)}});
    }
    json.push_back({{"operand", role(*layer.layer, i)}, {"levels", std::move(levels)}});
  }
  return json;
}

Json energies_json(const LayerCost& layer) {
  Json levels = Json::array();
  for (const LevelEnergy& level : layer.cost->levels) {
    const auto count = [&](Direction d) { return level.accesses[static_cast<std::size_t>(d)]; };
    levels.push_back({{"memory", valid_utf8(level.memory)},
                      {"operand", role(*layer.layer, level.operand)},
                      {"energy_pj", level.energy.value},
                      {"accesses",
                       {{"from_high", count(Direction::fh)},
                        {"to_low", count(Direction::tl)},
                        {"from_low", count(Direction::fl)},
                        {"to_high", count(Direction::th)}}}});
  }
  return levels;
}

/// Gap between the mapping and its lower bound, as a fraction of the bound; null without a bound.
Json gap_json(const CoreCost& cost, Objective objective) {
  const double found = merit(objective, cost.parts.total(), cost.energy().value).first;
  const double bound = merit(objective, cost.latency_bound, cost.energy_bound).first;
  return bound > 0 ? Json(found / bound - 1) : Json(nullptr);
}

/// Work and energy of a layer on an array that computes in memory.
Json imc_json(const ImcCost& cost) {
  const ImcWork& work = cost.work;
  Json energy = Json::object();
  for (const auto& [part, pj] : cost.energy_pj.named())
    energy[std::string(part)] = pj;
  return {{"rows", work.rows},
          {"columns", work.columns},
          {"waves", work.waves},
          {"weight_reads", work.weight_reads},
          {"energy_pj", std::move(energy)}};
}

Json layer_json(const LayerCost& layer, Objective objective) {
  const CoreCost& cost = *layer.cost;
  const CoreProblem& problem = layer.layer->problem;
  Json dims = Json::object();
  for (const LoopDim& dim : problem.dims)
    dims[valid_utf8(dim.name)] = dim.size;
  const double latency = std::max(1.0, cost.parts.total());
  Json json = {
      {"name", valid_utf8(layer.layer->name)},
      {"op_type", valid_utf8(layer.layer->op_type)},
      {"phase", monet::name_of(Phase::forward)},
      {"dims", std::move(dims)},
      {"operand_precision", precision_json(*layer.layer)},
      {"macs", mac_count(problem)},
      {"latency_cycles", cost.parts.total()},
      {"latency",
       {{"ideal_temporal_cycles", cost.parts.ideal_temporal},
        {"instruction_cycles", cost.parts.instructions},
        {"stall_cycles", cost.parts.stall},
        {"onload_cycles", cost.parts.onload},
        {"offload_cycles", cost.parts.offload}}},
      {"ideal_cycles", cost.ideal.value},
      {"utilisation", static_cast<double>(cost.ideal.value) / latency},
      {"spatial_utilisation", cost.spatial_utilisation},
      {"energy_pj", cost.energy().value},
      {"compute_energy_pj", cost.compute_energy.value},
      {"memory_energy_pj", cost.memory_energy.value},
      {"variant", cost.variant.empty() ? Json(nullptr) : Json(cost.variant)},
      {"spatial_mapping", spatial_json(layer)},
      {"temporal_mapping", loops_json(cost.temporal.order, problem)},
      {"operand_mapping", levels_of_loops_json(layer)},
      {"memory_levels", energies_json(layer)},
      {"search",
       {{"space", cost.effort.space},
        {"visited", cost.effort.visited},
        {"pruned", cost.effort.pruned},
        {"exact", cost.effort.exact}}},
      {"bound", {{"latency_cycles", cost.latency_bound}, {"energy_pj", cost.energy_bound}}},
      {"gap", gap_json(cost, objective)}};
  if (cost.imc)
    json["imc"] = imc_json(*cost.imc);
  return json;
}

std::string spatial_text(const Json& spatial) {
  std::string text;
  for (const auto& [dim, loops] : spatial.items()) {
    for (const Json& loop : loops) {
      text += fmt::format("{}{} {:.4g}", text.empty() ? "" : ", ", loop[0].get<std::string>(),
                          loop[1].get<double>());
    }
  }
  return text;
}

/// Count with separators; a fractional count has up to three decimals.
std::string count_text(double value) {
  constexpr double kWritable = 1e15;
  if (!(std::abs(value) < kWritable))
    return fmt::format("{:.4g}", value);
  const double thousandths = std::round(value * 1000);
  const auto whole = static_cast<std::int64_t>(std::floor(thousandths / 1000));
  std::string fraction = fmt::format("{:.3f}", thousandths / 1000 - static_cast<double>(whole));
  fraction.erase(fraction.find_last_not_of('0') + 1);
  return group_digits(whole) + (fraction == "0." ? "" : fraction.substr(1));
}

Json total_effort(const std::vector<LayerCost>& costs) {
  SearchEffort total;
  for (const LayerCost& layer : costs) {
    const SearchEffort& effort = layer.cost->effort;
    total.space += effort.space;
    total.visited += effort.visited;
    total.pruned += effort.pruned;
    total.exact = total.exact && effort.exact;
  }
  return {{"space", total.space},
          {"visited", total.visited},
          {"pruned", total.pruned},
          {"exact", total.exact}};
}

std::map<std::string, std::string> used_options(const CoreArguments& arguments) {
  std::map<std::string, std::string> options{
      {"model", arguments.model.model},
      {"objective", std::string(name_of(arguments.cost.objective))},
      {"lpf_limit", std::to_string(arguments.cost.lpf_limit)},
      {"allocation", arguments.model.allocation},
      {"generated", std::to_string(arguments.model.generated)},
      {"mixed", arguments.model.mixed ? "on" : "off"}};
  if (arguments.model.data_locality)
    options["data_locality"] = "on";
  for (const std::string& choice : arguments.model.choices) {
    const std::size_t equals = choice.find('=');
    options["choice " + choice.substr(0, equals)] = choice.substr(equals + 1);
  }
  return options;
}

Json core_json(const CoreInputs& inputs, const std::vector<LayerCost>& costs,
               const CoreArguments& arguments) {
  const Objective objective = arguments.cost.objective;
  Json layers = Json::array();
  double latency = 0;
  double energy = 0;
  std::int64_t macs = 0;
  for (const LayerCost& layer : costs) {
    latency += layer.cost->parts.total();
    energy += layer.cost->energy().value;
    macs = checked_add(macs, mac_count(layer.layer->problem));
    layers.push_back(layer_json(layer, objective));
  }
  Json skipped = Json::array();
  for (const SkippedOperator& op : inputs.skipped)
    skipped.push_back({{"name", valid_utf8(op.name)}, {"op_type", valid_utf8(op.op_type)}});
  std::vector<std::string> files = files_of(inputs.chip);
  files.push_back(arguments.workload);
  if (!arguments.mapping.empty())
    files.push_back(arguments.mapping);
  Provenance provenance = provenance_of(files);
  provenance.options = used_options(arguments);
  Json hardware = hardware_json(inputs.chip);
  const Json& array = hardware.at("cores")[0].at("array");
  const double area = array.contains("imc") && arguments.model.is_zigzag()
                          ? array.at("imc").at("zigzag_core_area_mm2").get<double>()
                          : inputs.chip.area_mm2();
  return {{"schema_version", 1},
          {"core", valid_utf8(inputs.core().name)},
          {"network", valid_utf8(inputs.network)},
          {"model", arguments.model.model},
          {"latency_cycles", latency},
          {"energy_pj", energy},
          {"area_mm2", area},
          {"hardware", std::move(hardware)},
          {"macs", {{"total", macs}}},
          {"search", total_effort(costs)},
          {"layers", std::move(layers)},
          {"skipped", std::move(skipped)},
          {"provenance", provenance_json(provenance)}};
}

/// Text on an array that computes in memory, with the share of each part in the energy of all
/// layers.
std::string imc_text(const Json& json) {
  const Json& array = json.at("hardware").at("cores")[0].at("array");
  if (!array.contains("imc"))
    return "";
  const Json& imc = array.at("imc");
  std::vector<std::pair<double, std::string>> parts;
  double all = 0;
  for (const Json& layer : json.at("layers")) {
    if (!layer.contains("imc"))
      continue;
    std::size_t p = 0;
    for (const auto& [part, energy] : layer.at("imc").at("energy_pj").items()) {
      parts.resize(std::max(parts.size(), p + 1));
      parts[p].first += energy.get<double>();
      parts[p++].second = part;
      all += energy.get<double>();
    }
  }
  std::ranges::stable_sort(parts, [](const auto& a, const auto& b) { return a.first > b.first; });
  std::string text =
      fmt::format("{} in memory: {:.4g} mm2, clock {:.4g} ns, {:.4g} TOPS, {:.4g} TOPS/W at most\n"
                  "MACs {}:",
                  imc.at("type").get<std::string>(), imc.at("area_mm2").at("total").get<double>(),
                  imc.at("clock_ns").at("total").get<double>(), imc.at("peak_tops").get<double>(),
                  imc.at("peak_tops_per_w").get<double>(), human_energy(all));
  const char* separator = " ";
  for (const auto& [energy, part] : parts) {
    if (energy > 0)
      text +=
          fmt::format("{}{} {:.1f} %", std::exchange(separator, ", "), part, 100 * energy / all);
  }
  return text + "\n";
}

/// Table of all layers, at most 120 columns wide.
std::string core_table(const Json& json) {
  std::vector<std::vector<std::string>> rows{
      {"layer", "type", "unrolled", "MACs", "cycles", "util.", "energy"}};
  const auto text = [](const Json& name, std::size_t columns) {
    return clipped(printable(name.get<std::string>()), columns);
  };
  for (const Json& layer : json.at("layers")) {
    rows.push_back({text(layer.at("name"), kLayerColumn), text(layer.at("op_type"), kTypeColumn),
                    clipped(printable(spatial_text(layer.at("spatial_mapping"))), kUnrolledColumn),
                    group_digits(layer.at("macs").get<std::int64_t>()),
                    count_text(layer.at("latency_cycles").get<double>()),
                    fmt::format("{:.1f} %", 100 * layer.at("utilisation").get<double>()),
                    human_energy(layer.at("energy_pj").get<double>())});
  }
  rows.push_back({"total", "", "", group_digits(json.at("macs").at("total").get<std::int64_t>()),
                  count_text(json.at("latency_cycles").get<double>()), "",
                  human_energy(json.at("energy_pj").get<double>())});
  std::string table = aligned_table(rows) + imc_text(json);
  const Json& search = json.at("search");
  table += fmt::format("mappings: {} in the space, {} evaluated, {} pruned; {}\n",
                       count_text(search.at("space").get<double>()),
                       group_digits(search.at("visited").get<std::int64_t>()),
                       count_text(search.at("pruned").get<double>()),
                       search.at("exact").get<bool>() ? "every optimum is exact"
                                                      : "some were skipped without a bound");
  if (!json.at("skipped").empty())
    table += fmt::format("{} operators are {}\n", json.at("skipped").size(),
                         json.at("model") == "monet" ? "not for this core" : "without cost");
  return table;
}

/// Prints the costs of a chip's memories and arrays, which need no workload.
int show_hardware(const CoreArguments& arguments, Session& session) {
  const Chip chip = session.stage("read files", [&] { return read_chip(arguments.hardware); });
  const Json json = hardware_json(chip);
  write_output(arguments.json, json, hardware_table(json));
  return kExitOk;
}

int run_core(const CoreArguments& arguments, Session& session) {
  if (arguments.memories)
    return show_hardware(arguments, session);
  CoreCostOptions options = arguments.cost;
  arguments.model.apply(options);
  const CoreInputs inputs =
      session.stage("read files", [&] { return read_core_inputs(arguments); });
  ProblemList problems;
  std::deque<CoreTask> tasks;
  for (std::size_t i = 0; i < inputs.layers.size(); ++i)
    tasks.push_back(core_task(i, inputs, options, problems));
  problems.throw_if_any();
  CoreCostCache cache;
  std::vector<LayerCost> costs;
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    const Layer& layer = inputs.layers[i];
    check_stop();
    session.progress.stage("core cost: " + printable(layer.name));
    const CoreTask& task = tasks[i];
    costs.push_back({&layer, &cache.get(task.problem, task.core, task.options), &task.core});
  }
  const Json json = core_json(inputs, costs, arguments);
  write_output(arguments.json, json, core_table(json));
  return kExitOk;
}

} // namespace

void add_core_command(Command& monet) {
  auto arguments = std::make_shared<CoreArguments>();
  Command& command =
      monet.add_command("core", "Compute the cost of every layer of a network on one core");
  command.add("--hardware", &arguments->hardware, "Core file",
              {.type = "CORE.yaml", .required = true});
  command.add("--workload", &arguments->workload,
              "ONNX network, or list of layers in ZigZag's format",
              {.type = "NET.onnx|LAYERS.yaml"});
  command.add("--memories", &arguments->memories,
              "List energy and area of every memory and array of a core or system file; replaces "
              "--workload");
  command.add("--format", &arguments->format,
              "Number format of the layers of a list, for cores with modes", {.type = "FORMAT"});
  command.add("--mapping", &arguments->mapping,
              "Mapping file: spatial mappings and hints, temporal orders, operand links",
              {.type = "MAP.yaml"});
  arguments->network.add_to(command);
  command.add(bind(kCoreCostKeys, arguments->cost));
  arguments->model.add_to(command);
  command.add("--json", &arguments->json, "Write the costs as JSON; -: standard output",
              {.type = "FILE", .output = Output::file});
  command.footer = describe_choices() +
                   "\nExample: monet core --hardware data/hardware/cores/edge_tpu_pe.yaml "
                   "--workload data/workload/resnet18_cifar.onnx --batch 1";
  command.missing = [&command, arguments] {
    return command.given("--workload") || arguments->memories ? "" : "--workload";
  };
  command.action = [arguments](Session& session) { return run_core(*arguments, session); };
}

} // namespace monet::cli

// monet core: what every layer of a network costs on one core, whatever the rest of the chip.
#include "commands.hpp"
#include "network_options.hpp"
#include "pipeline.hpp"

#include "monet/base/text.hpp"
#include "monet/core_cost/mapping_file.hpp"
#include "monet/hardware/read_hardware.hpp"
#include "monet/report/text.hpp"
#include "monet/schedule/schedule.hpp"
#include "monet/workload/views.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <memory>

namespace monet::cli {

namespace {

using Json = nlohmann::ordered_json;

struct CoreArguments {
  std::string hardware;
  std::string workload;
  std::string mapping;
  NetworkArguments network;
  CostArguments cost;
  std::string json;
};

struct Inputs {
  TrainingGraph graph;
  Chip chip; ///< the core alone: its memories, the outermost included, are all there is
  std::optional<MappingFile> mapping;
};

struct LayerCost {
  OpId op;
  CoreProblem problem;
  const Core* core = nullptr; ///< with the dataflow that the mapping file asks for
  const CoreCost* cost = nullptr;
};

void refuse_unavailable(const MappingFile& mapping, ProblemList& problems) {
  for (const MappingEntry& entry : mapping.entries) {
    const auto refuse = [&](bool given, const char* key) {
      if (given)
        problems.add(entry.where, fmt::format("'{}' is not available yet", key));
    };
    refuse(!entry.temporal_ordering.empty(), "temporal_ordering");
    refuse(!entry.spatial_mapping_hint.empty(), "spatial_mapping_hint");
  }
}

Inputs read_inputs(const CoreArguments& arguments) {
  ProblemList problems;
  auto network = collecting(
      problems, [&] { return read_network(arguments.workload, arguments.network.options()); });
  auto core = collecting(problems, [&] { return read_core(arguments.hardware); });
  Inputs inputs;
  if (!arguments.mapping.empty()) {
    inputs.mapping = collecting(problems, [&] { return read_mapping(arguments.mapping); });
    if (inputs.mapping)
      refuse_unavailable(*inputs.mapping, problems);
  }
  problems.throw_if_any();
  inputs.graph = fold_views(make_inference_graph(*network));
  inputs.chip.name = core->name;
  inputs.chip.origin = arguments.hardware;
  inputs.chip.cores.push_back(std::move(*core));
  make_routes(inputs.chip);
  return inputs;
}

/// The core with the unrolling of a mapping entry in place of its own dataflow.
Core with_unrolling(const Core& core, const MappingEntry& entry, ProblemList& problems) {
  Core changed = core;
  changed.dataflow.assign(core.array.size(), {});
  for (const auto& [name, unrollings] : entry.spatial_mapping) {
    const auto dim =
        std::find_if(core.array.begin(), core.array.end(),
                     [&, &wanted = name](const ArrayDim& d) { return d.name == wanted; });
    if (dim == core.array.end()) {
      problems.add(entry.where, fmt::format("the core has no array dimension '{}'", name));
      continue;
    }
    changed.dataflow[static_cast<std::size_t>(dim - core.array.begin())] = unrollings;
  }
  return changed;
}

void link_memories(const Operator& op, const MappingEntry& entry, CoreProblem& problem) {
  for (std::size_t i = 0; i < problem.operands.size() && i < op.nest.operands.size(); ++i) {
    const auto link = entry.memory_operand_links.find(op.nest.operands[i].role);
    if (link != entry.memory_operand_links.end())
      problem.operands[i].memory = link->second;
  }
}

Json spatial_json(const LayerCost& layer) {
  Json json = Json::object();
  const SpatialMapping& spatial = layer.cost->spatial;
  for (std::size_t i = 0; i < spatial.unrolled.size() && i < layer.core->array.size(); ++i) {
    Json loops = Json::array();
    for (const MappedLoop& loop : spatial.unrolled[i]) {
      loops.push_back(Json::array({layer.problem.dims.at(loop.dim).name, loop.size}));
    }
    json[valid_utf8(layer.core->array[i].name)] = std::move(loops);
  }
  return json;
}

Json levels_json(const LayerCost& layer, const Operator& op) {
  Json levels = Json::array();
  for (const LevelEnergy& level : layer.cost->levels) {
    const auto count = [&](Direction d) { return level.accesses[static_cast<std::size_t>(d)]; };
    levels.push_back({{"memory", valid_utf8(level.memory)},
                      {"operand", level.operand < op.nest.operands.size()
                                      ? valid_utf8(op.nest.operands[level.operand].role)
                                      : ""},
                      {"energy_pj", level.energy.value},
                      {"accesses",
                       {{"from_high", count(Direction::fh)},
                        {"to_low", count(Direction::tl)},
                        {"from_low", count(Direction::fl)},
                        {"to_high", count(Direction::th)}}}});
  }
  return levels;
}

Json layer_json(const LayerCost& layer, const Operator& op) {
  const CoreCost& cost = *layer.cost;
  Json dims = Json::object();
  for (const LoopDim& dim : op.nest.dims)
    dims[valid_utf8(dim.name)] = dim.size;
  Json temporal = Json::array();
  for (const MappedLoop& loop : cost.temporal.order) {
    temporal.push_back(Json::array({layer.problem.dims.at(loop.dim).name, loop.size}));
  }
  const double latency = static_cast<double>(std::max<std::int64_t>(1, cost.latency.value));
  return {{"name", valid_utf8(op.name)},
          {"op_type", valid_utf8(op.op_type)},
          {"phase", monet::name_of(op.phase)},
          {"dims", std::move(dims)},
          {"macs", macs(op.nest)},
          {"latency_cycles", cost.latency.value},
          {"ideal_cycles", cost.ideal.value},
          {"utilisation", static_cast<double>(cost.ideal.value) / latency},
          {"spatial_utilisation", cost.spatial_utilisation},
          {"energy_pj", cost.energy().value},
          {"compute_energy_pj", cost.compute_energy.value},
          {"memory_energy_pj", cost.memory_energy.value},
          {"spatial_mapping", spatial_json(layer)},
          {"temporal_mapping", std::move(temporal)},
          {"memory_levels", levels_json(layer, op)}};
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

std::string core_table(const Json& json) {
  std::vector<std::vector<std::string>> rows{
      {"layer", "type", "unrolled", "MACs", "cycles", "utilisation", "energy"}};
  for (const Json& layer : json.at("layers")) {
    rows.push_back({printable(layer.at("name").get<std::string>()),
                    printable(layer.at("op_type").get<std::string>()),
                    printable(spatial_text(layer.at("spatial_mapping"))),
                    group_digits(layer.at("macs").get<std::int64_t>()),
                    group_digits(layer.at("latency_cycles").get<std::int64_t>()),
                    fmt::format("{:.1f} %", 100 * layer.at("utilisation").get<double>()),
                    human_energy(layer.at("energy_pj").get<double>())});
  }
  rows.push_back({"total", "", "", group_digits(json.at("macs").at("total").get<std::int64_t>()),
                  group_digits(json.at("latency_cycles").get<std::int64_t>()), "",
                  human_energy(json.at("energy_pj").get<double>())});
  std::string text = aligned_table(rows);
  if (!json.at("skipped").empty()) {
    text += fmt::format("{} layers are not for this core\n", json.at("skipped").size());
  }
  return text;
}

Json core_json(const Inputs& inputs, const std::vector<LayerCost>& costs,
               const CoreArguments& arguments) {
  const Graph& graph = inputs.graph.graph;
  Json layers = Json::array();
  std::int64_t latency = 0;
  std::int64_t mac_count = 0;
  double energy = 0;
  Json skipped = Json::array();
  for (const LayerCost& layer : costs) {
    const Operator& op = graph.op(layer.op);
    if (layer.cost == nullptr) {
      skipped.push_back({{"name", valid_utf8(op.name)}, {"op_type", valid_utf8(op.op_type)}});
      continue;
    }
    latency += layer.cost->latency.value;
    energy += layer.cost->energy().value;
    mac_count += macs(op.nest);
    layers.push_back(layer_json(layer, op));
  }
  std::vector<std::string> files = files_of(inputs.chip);
  files.push_back(arguments.workload);
  if (!arguments.mapping.empty())
    files.push_back(arguments.mapping);
  Provenance provenance = provenance_of(files);
  provenance.options = {{"objective", arguments.cost.objective},
                        {"lpf_limit", std::to_string(arguments.cost.lpf_limit)}};
  return {{"schema_version", 1},
          {"core", valid_utf8(inputs.chip.cores[0].name)},
          {"network", valid_utf8(graph.name)},
          {"latency_cycles", latency},
          {"energy_pj", energy},
          {"area_mm2", inputs.chip.area_mm2()},
          {"macs", {{"total", mac_count}}},
          {"layers", std::move(layers)},
          {"skipped", std::move(skipped)},
          {"provenance", provenance_json(provenance)}};
}

int run_core(const CoreArguments& arguments, Session& session) {
  const Inputs inputs = session.stage("read files", [&] { return read_inputs(arguments); });
  const Core& core = inputs.chip.cores[0];
  const Graph& graph = inputs.graph.graph;
  CoreCostCache cache;
  std::vector<std::unique_ptr<Core>> changed; // keeps the cores of `costs` in place
  std::vector<LayerCost> costs;
  ProblemList problems;
  for (std::size_t i = 0; i < graph.operators().size(); ++i) {
    session.context.check_stop("core cost");
    const Operator& op = graph.operators()[i];
    session.progress.stage("core cost: " + printable(op.name));
    LayerCost& layer = costs.emplace_back();
    layer.op = OpId(i);
    if (!can_run(core, op.nest.compute, op.op_type))
      continue;
    CoreCostOptions options = arguments.cost.options();
    layer.problem =
        core_problem({layer.op, full_tile(op.nest), CoreId(0)}, inputs.graph, inputs.chip);
    layer.core = &core;
    const MappingEntry* entry =
        inputs.mapping ? inputs.mapping->find(op.name, op.op_type) : nullptr;
    if (entry != nullptr)
      link_memories(op, *entry, layer.problem);
    if (entry != nullptr && !entry->spatial_mapping.empty()) {
      changed.push_back(std::make_unique<Core>(with_unrolling(core, *entry, problems)));
      layer.core = changed.back().get();
      options.fixed_dataflow = true;
    }
    if (problems.empty())
      layer.cost = &cache.get(layer.problem, *layer.core, options);
  }
  problems.throw_if_any();
  const Json json = core_json(inputs, costs, arguments);
  if (!arguments.json.empty())
    write_json(arguments.json, json);
  if (arguments.json != "-")
    print_result(core_table(json));
  return kExitOk;
}

} // namespace

Action add_core_command(CLI::App& app) {
  auto arguments = std::make_shared<CoreArguments>();
  CLI::App* command = app.add_subcommand("core", "Costs every layer of a network on one core");
  command->add_option("--hardware", arguments->hardware, "Core file")
      ->required()
      ->type_name("CORE.yaml");
  command->add_option("--workload", arguments->workload, "Network")
      ->required()
      ->type_name("NET.onnx");
  command->add_option("--mapping", arguments->mapping, "Spatial mapping and operand links")
      ->type_name("MAP.yaml");
  arguments->network.add_to(*command);
  arguments->cost.add_to(*command);
  command->add_option("--json", arguments->json, "Write the costs as JSON; - for standard output")
      ->type_name("FILE");
  command->footer("Example: monet core --hardware data/hardware/cores/edge_tpu_pe.yaml "
                  "--workload data/workload/resnet18_cifar.onnx --batch 1");
  return [arguments](Session& session) { return run_core(*arguments, session); };
}

} // namespace monet::cli

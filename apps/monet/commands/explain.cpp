// monet explain EXPERIMENT.yaml: why a step takes its time, the loop nests of its layers, and what
// would help.
#include "base/shared/text.hpp"
#include "commands/commands.hpp"
#include "commands/what_if.hpp"
#include "report/shared/text.hpp"
#include "report/shared/written.hpp"

#include "monet/base/errors.hpp"
#include "monet/schedule/tile_costs.hpp"

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <map>
#include <memory>

namespace monet::cli {

namespace {

struct ExplainArguments {
  std::string experiment;
  std::string layer;
  std::string json;
  bool no_what_if = false;
  int layers = 10;
  int jobs = 1;
};

std::string percent_of(std::int64_t part, std::int64_t whole) {
  return whole == 0 ? "-"
                    : fmt::format("{:.1f} %",
                                  100 * static_cast<double>(part) / static_cast<double>(whole));
}

/// Parts of an object of cycles, the largest first: "off-chip 65.0 %, compute 15.7 %".
std::string parts_text(const Json& cycles, std::size_t most) {
  std::vector<std::pair<std::int64_t, std::string>> parts;
  std::int64_t sum = 0;
  for (const auto& [key, value] : cycles.items()) {
    const std::size_t end = key.rfind("_cycles");
    if (end == std::string::npos || !value.is_number_integer())
      continue;
    std::string name = key.substr(0, end);
    std::ranges::replace(name, '_', ' ');
    parts.emplace_back(value.get<std::int64_t>(), name);
    sum += parts.back().first;
  }
  std::ranges::stable_sort(parts, std::ranges::greater{},
                           &std::pair<std::int64_t, std::string>::first);
  std::string text;
  for (std::size_t i = 0; i < std::min(most, parts.size()) && parts[i].first > 0; ++i)
    text += fmt::format("{}{} {}", i == 0 ? "" : ", ", parts[i].second,
                        percent_of(parts[i].first, sum));
  return text.empty() ? "-" : text;
}

std::int64_t part(const Json& layer, const char* cause) {
  return layer.at("busy").at(cause).get<std::int64_t>();
}

std::string layers_table(const Json& result, std::size_t most) {
  const std::vector<const Json*> layers = layers_by_critical_path(result.at("layers"));
  std::vector<std::vector<std::string>> table{
      {"layer", "critical path", "share", "waits most for", "spatial", "temporal"}};
  for (std::size_t i = 0; i < std::min(most, layers.size()); ++i) {
    const Json& layer = *layers[i];
    const auto cycles = layer.at("critical_path_cycles").get<std::int64_t>();
    const std::int64_t work = part(layer, "work_cycles");
    const std::int64_t mapped = work + part(layer, "idle_lanes_cycles");
    table.push_back({clipped(layer.at("name").get<std::string>(), 36), group_digits(cycles),
                     percent_of(cycles, result.at("latency_cycles").get<std::int64_t>()),
                     parts_text(layer.at("critical_path"), 1), percent_of(work, mapped),
                     percent_of(mapped, layer.at("busy_cycles").get<std::int64_t>())});
  }
  return aligned_table(table);
}

// --- loop nests ---

/// Tiles of a layer that have one cost.
struct TileGroup {
  std::uint32_t row = 0;
  std::int64_t count = 0;
  CoreId core;
};

/// The cost that most tiles of an operator have, the first of equals.
TileGroup commonest(const TileGraph& tiles, const TileCosts& costs, OpId op) {
  std::map<std::uint32_t, TileGroup> groups;
  const auto [first, last] = tiles.tiles_of(op);
  for (std::uint32_t t = first; t < last; ++t) {
    TileGroup& group =
        groups.try_emplace(costs.row_of[t], TileGroup{costs.row_of[t], 0, tiles.tiles[t].core})
            .first->second;
    ++group.count;
  }
  return std::ranges::max_element(groups, {}, [](const auto& group) { return group.second.count; })
      ->second;
}

std::string loops_text(const std::vector<MappedLoop>& loops, const CoreProblem& problem) {
  std::string text;
  for (const MappedLoop& loop : loops)
    text += fmt::format("{}{} {:.4g}", text.empty() ? "" : ", ",
                        printable(problem.dims.at(loop.dim).name), loop.size);
  return text;
}

/// Memories of an operand from the lowest level up; "off-chip" above them.
std::vector<std::string> memories_of(const CoreCost& cost, std::size_t operand) {
  std::vector<std::string> names;
  for (const LevelEnergy& level : cost.levels) {
    if (level.operand == operand)
      names.push_back(printable(level.memory));
  }
  return names;
}

/// Memory that holds an operand's data of each temporal loop, innermost first.
std::vector<std::string> places_of_loops(const CoreCost& cost, std::size_t operand) {
  const std::vector<std::string> names = memories_of(cost, operand);
  std::vector<std::string> places;
  const auto& levels = cost.temporal.by_operand[operand];
  for (std::size_t l = 0; l < levels.size(); ++l)
    places.resize(places.size() + levels[l].size(), l < names.size() ? names[l] : "off-chip");
  places.resize(cost.temporal.order.size(), "off-chip");
  return places;
}

std::string role_of(const Operator& op, std::size_t operand) {
  return operand < op.nest.operands.size() ? printable(op.nest.operands[operand].role)
                                           : std::to_string(operand);
}

/// Temporal loops of a tile, outermost first, with the memory that holds each operand's data below
/// the loop.
std::string nest_table(const Operator& op, const TileCost& tile) {
  const CoreCost& cost = *tile.cost;
  const std::size_t operands = cost.temporal.by_operand.size();
  std::vector<std::vector<std::string>> table{{"loop"}};
  std::vector<std::vector<std::string>> places;
  for (std::size_t i = 0; i < operands; ++i) {
    table[0].push_back(role_of(op, i) + " in");
    places.push_back(places_of_loops(cost, i));
  }
  const std::size_t count = cost.temporal.order.size();
  for (std::size_t k = 0; k < count; ++k) {
    const std::size_t at = count - 1 - k;
    std::vector<std::string> row{fmt::format("{}for {}", std::string(k, ' '),
                                             loops_text({cost.temporal.order[at]}, *tile.problem))};
    for (std::size_t i = 0; i < operands; ++i)
      row.push_back(places[i][at]);
    table.push_back(std::move(row));
  }
  return aligned_table(table);
}

std::string nest_text(const Operator& op, const TileCost& tile, const Core& core) {
  std::string text;
  if (tile.cost->temporal.order.empty())
    text += "no loops over time: the core does the tile's operations one lane after the other\n";
  else
    text += nest_table(op, tile);
  const SpatialMapping& spatial = tile.cost->spatial;
  for (std::size_t i = 0; i < spatial.unrolled.size() && i < core.array.size(); ++i) {
    const std::string loops = loops_text(spatial.unrolled[i], *tile.problem);
    text += fmt::format("unrolled over {} ({}): {}\n", printable(core.array[i].name),
                        core.array[i].size, loops.empty() ? "nothing" : loops);
  }
  return text;
}

std::string layer_text(const Json& layer, const ModelledGraph& step, const Chip& chip,
                       const TileCosts& costs, OpId op_id) {
  const Operator& op = step.graph.graph.op(op_id);
  const TileGroup group = commonest(step.modelled.tiles, costs, op_id);
  const TileCost& tile = costs.rows[group.row];
  const auto [first, last] = step.modelled.tiles.tiles_of(op_id);
  std::string text = fmt::format("{} ({}, {})\n  critical path  {} cycles: {}\n  runs           {} "
                                 "cycles over all cores: {}\n",
                                 printable(op.name), op.op_type.name(), name_of(op.phase),
                                 group_digits(layer.at("critical_path_cycles").get<std::int64_t>()),
                                 parts_text(layer.at("critical_path"), 5),
                                 group_digits(layer.at("busy_cycles").get<std::int64_t>()),
                                 parts_text(layer.at("busy"), 6));
  text += fmt::format("  off-chip       {}\n\n",
                      human_bytes(layer.at("offchip_bytes").get<std::int64_t>()));
  std::string dims;
  for (const LoopDim& dim : tile.problem->dims)
    dims += fmt::format("{}{}={}", dims.empty() ? "" : " ", printable(dim.name), dim.size);
  const Core& core = chip.cores[group.core.index()];
  text += fmt::format("{} of its {} tiles on {}, such as core {}: {}\n", group.count, last - first,
                      printable(core.name), group.core.index(), dims);
  return text + nest_text(op, tile, core);
}

/// The operator of that name; throws UsageError with the nearest name.
OpId find_layer(const Graph& graph, const std::string& name) {
  for (std::size_t i = 0; i < graph.operators().size(); ++i) {
    if (graph.op(OpId(i)).name == name)
      return OpId(i);
  }
  const std::string hint = nearest_name_hint(name, names_of(graph.operators()));
  throw UsageError(fmt::format("--layer: the step has no layer '{}'{}", printable(name),
                               hint.empty() ? "" : " (" + hint + ")"));
}

int run_explain(const ExplainArguments& arguments, Session& session) {
  session.context.jobs = arguments.jobs;
  const Experiment experiment = read_experiment(arguments.experiment);
  if (experiment.optimise || !experiment.alternate.empty())
    throw UsageError("monet explain takes experiments without 'optimise' and 'alternate'");
  const ModelInputs inputs = read_and_check(experiment, session);
  const Model model = make_model(experiment, inputs, session, false);
  const Json result = model.json(experiment.name);
  std::string text = fmt::format("{}: {} cycles\ncritical path: {}\n\n", printable(experiment.name),
                                 group_digits(result.at("latency_cycles").get<std::int64_t>()),
                                 parts_text(result.at("critical_path"), 5));
  Json json{{"schema_version", 1},
            {"kind", "explanation"},
            {"name", result.at("name")},
            {"latency_cycles", result.at("latency_cycles")},
            {"energy_pj", result.at("energy_pj")}};
  if (arguments.layer.empty()) {
    text += layers_table(result, static_cast<std::size_t>(arguments.layers));
    json["layers"] = result.at("layers");
  } else {
    const OpId op = find_layer(model.step.graph.graph, arguments.layer);
    CoreCostCache cache;
    const TileCosts costs = tile_costs(model.step.modelled.tiles, model.step.graph, model.chip,
                                       cache, experiment.core_cost, arguments.jobs);
    const Json& layer = result.at("layers")[op.index()];
    text += layer_text(layer, model.step, model.chip, costs, op);
    json["layers"] = Json::array({layer});
  }
  if (!arguments.no_what_if) {
    const std::vector<WhatIf> changes = model_changes(experiment, inputs, session);
    json["what_if"] = what_if_json(changes);
    text += '\n' + what_if_table(changes, model.step.modelled.figures);
  }
  write_output(arguments.json, written(ResultSchema::explain, std::move(json)), text);
  return kExitOk;
}

} // namespace

void add_explain_command(Command& monet) {
  auto arguments = std::make_shared<ExplainArguments>();
  Command& command =
      monet.add_command("explain", "Show why a step takes its time, and what would help");
  command.add("experiment", &arguments->experiment, "Experiment file (YAML)",
              {.type = "EXPERIMENT.yaml", .required = true});
  command.add("--layer", &arguments->layer, "Layer whose loop nest is shown", {.type = "NAME"});
  command.add("--layers", &arguments->layers, "Maximum number of layers in the table",
              {.range = Range{0, 1'000'000}});
  command.add("--no-what-if", &arguments->no_what_if,
              "Do not model the step again with more bandwidth, memory, lanes or samples");
  command.add("--json", &arguments->json, "Write the figures as JSON; -: standard output",
              {.type = "FILE", .output = Output::file});
  command.add("--jobs", &arguments->jobs,
              "Number of threads (0: all cores); results do not depend on it",
              {.range = Range{0, 4096}});
  command.footer = "Example: monet explain examples/edge_resnet18_cifar.yaml --layer /conv1/Conv";
  command.action = [arguments](Session& session) { return run_explain(*arguments, session); };
}

} // namespace monet::cli

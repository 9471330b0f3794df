// monet optimise fusion: which operators run together, slice by slice.
#include "optimise.hpp"

#include "monet/base/files.hpp"
#include "monet/optimise/fusion.hpp"
#include "monet/report/text.hpp"
#include "monet/tiling/stacks_file.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <memory>

namespace monet::cli {

namespace {

using Json = nlohmann::ordered_json;

struct Arguments {
  OptimiseArguments common;
  FusionArguments own;
};

constexpr std::array kMethods{FusionMethod::cost, FusionMethod::fewest_groups,
                              FusionMethod::least_traffic, FusionMethod::automatic,
                              FusionMethod::none};
constexpr std::array kObjectives{StepObjective::latency, StepObjective::energy, StepObjective::edp,
                                 StepObjective::dram};
constexpr std::array<const char*, 4> kPhases{"forward", "loss", "backward", "update"};

template <class List>
auto named(const List& list, const std::string& name) {
  return *std::find_if(list.begin(), list.end(),
                       [&](auto value) { return name_of(value) == name; });
}

template <class List>
std::vector<std::string> names_of(const List& list) {
  std::vector<std::string> names;
  for (const auto value : list)
    names.emplace_back(name_of(value));
  return names;
}

Json figures_json(const FusionFigures& figures) {
  Json json;
  json["latency_cycles"] = figures.latency_cycles;
  json["energy_pj"] = figures.energy_pj;
  json["offchip_bytes"] = bytes_of(Bits{figures.offchip_bits});
  json["peak_memory_bytes"] = figures.peak_live_bytes;
  json["tiles"] = figures.tiles;
  return json;
}

Json groups_json(const FusionResult& result, const Graph& graph) {
  Json groups = Json::array();
  for (std::size_t s = 0; s < result.plan.stacks.size(); ++s) {
    if (result.plan.stacks[s].size() < 2 &&
        (!result.plan.slices[s] || result.plan.slices[s]->cuts.empty()))
      continue;
    Json group;
    group["operators"] = Json::array();
    for (const OpId member : result.plan.stacks[s])
      group["operators"].push_back(valid_utf8(graph.op(member).name));
    if (result.plan.slices[s]) {
      group["slices"] = Json::array();
      for (const StackSlices::Cut& cut : result.plan.slices[s]->cuts)
        group["slices"].push_back({{"operator", valid_utf8(graph.op(cut.op).name)},
                                   {"loop", valid_utf8(graph.op(cut.op).nest.dims[cut.dim].name)},
                                   {"count", cut.count}});
      if (result.plan.slices[s]->halo)
        group["halo"] = *result.plan.slices[s]->halo == Halo::cached ? "cached" : "recomputed";
    }
    if (s < result.ends.size())
      group["reason"] = valid_utf8(result.ends[s]);
    groups.push_back(std::move(group));
  }
  return groups;
}

const FusionFigures* unfused(const FusionResult& result) {
  for (const FusionAnswer& answer : result.compared) {
    if (answer.method == FusionMethod::none && answer.figures)
      return &*answer.figures;
  }
  return nullptr;
}

Json phases_json(const FusionResult& result) {
  Json phases = Json::array();
  const FusionFigures* none = unfused(result);
  for (std::size_t p = 0; p < kPhases.size(); ++p) {
    const auto& own = result.figures.phases[p];
    const auto& before = none != nullptr ? none->phases[p] : own;
    if (own.cycles == 0 && before.cycles == 0)
      continue;
    phases.push_back({{"phase", kPhases[p]},
                      {"latency_cycles", own.cycles},
                      {"energy_pj", own.energy_pj},
                      {"offchip_bytes", bytes_of(Bits{own.offchip_bits})},
                      {"unfused_latency_cycles", before.cycles},
                      {"unfused_energy_pj", before.energy_pj},
                      {"unfused_offchip_bytes", bytes_of(Bits{before.offchip_bits})}});
  }
  return phases;
}

Json compared_json(const FusionResult& result) {
  Json rows = Json::array();
  const auto add = [&](const FusionFigures& figures, std::string_view name) {
    Json row{{"name", name}};
    row.update(figures_json(figures));
    rows.push_back(std::move(row));
  };
  add(result.figures, "best");
  for (const FusionAnswer& answer : result.compared) {
    if (answer.figures)
      add(*answer.figures, name_of(answer.method));
  }
  return rows;
}

/// At most so many rows: where the best changes, and the last.
Json trace_json(const FusionResult& result) {
  Json rows = Json::array();
  for (std::size_t i = 0; i < result.trace.size(); ++i) {
    if (i > 0 && i + 1 < result.trace.size() && result.trace[i] >= result.trace[i - 1])
      continue;
    rows.push_back({{"evaluations", i + 1},
                    {"best", number_json(result.trace[i])},
                    {"bound", number_json(result.certificate.bound)}});
  }
  return rows;
}

std::string table_of(const FusionResult& result, StepObjective objective) {
  std::string table = fmt::format("{:<16}{:>20}{:>20}{:>20}\n", "", "latency (cycles)",
                                  "energy (pJ)", "off-chip (bytes)");
  const auto row = [&](std::string_view name, const FusionFigures& f) {
    table += fmt::format("{:<16}{:>20}{:>20.6g}{:>20}\n", name, f.latency_cycles, f.energy_pj,
                         bytes_of(Bits{f.offchip_bits}));
  };
  row("best", result.figures);
  for (const FusionAnswer& answer : result.compared) {
    if (answer.figures)
      row(name_of(answer.method), *answer.figures);
    else
      table += fmt::format("{:<16}  {}\n", name_of(answer.method), answer.why_not);
  }
  if (!result.kept.empty())
    table += "\nkept of the candidates:\n";
  for (const KeepRate& rate : result.kept) {
    const double all = static_cast<double>(std::max<std::int64_t>(1, rate.candidates));
    table += fmt::format("  {:5.1f} % of {:>7}  {}\n", 100 * static_cast<double>(rate.kept) / all,
                         rate.candidates, rate.rule);
  }
  std::size_t groups = 0;
  for (const auto& stack : result.plan.stacks)
    groups += stack.size() > 1 ? 1 : 0;
  const char* unit = objective == StepObjective::latency  ? "cycles"
                     : objective == StepObjective::energy ? "pJ"
                     : objective == StepObjective::edp    ? "pJ x cycles"
                                                          : "bits";
  table += fmt::format("\n{} groups by {}; {} {:.6g} {}, bound {:.6g}, gap {}{}\n", groups,
                       name_of(result.method), name_of(objective), result.certificate.best, unit,
                       result.certificate.bound, gap_text(result.certificate),
                       result.complete ? ", every plan tried" : "");
  return table;
}

Json json_of(const FusionResult& result, const Graph& graph, Json json) {
  json["method"] = name_of(result.method);
  json["every_plan_tried"] = result.complete;
  json["figures"] = figures_json(result.figures);
  json["compared"] = compared_json(result);
  json["skipped"] = Json::array(); // known plans that could not be scheduled
  for (const FusionAnswer& answer : result.compared) {
    if (!answer.figures)
      json["skipped"].push_back(
          {{"name", name_of(answer.method)}, {"reason", valid_utf8(answer.why_not)}});
  }
  json["phases"] = phases_json(result);
  json["groups"] = groups_json(result, graph);
  json["kept"] = Json::array();
  for (const KeepRate& rate : result.kept)
    json["kept"].push_back(
        {{"rule", rate.rule},
         {"candidates", rate.candidates},
         {"kept", rate.kept},
         {"fraction", static_cast<double>(rate.kept) /
                          static_cast<double>(std::max<std::int64_t>(1, rate.candidates))}});
  json["trace"] = trace_json(result);
  json["evaluations"] = result.evaluations;
  json["group_evaluations"] = result.group_evaluations;
  return json;
}

/// --report: layer by layer next to the plan.
void write_report(const Arguments& arguments, const SearchInputs& inputs,
                  const FusionProblem& problem, const FusionPlan& plan, const Json& json) {
  if (arguments.common.report.empty())
    return;
  const auto modelled = [&](const TilingOptions& tiling) {
    ModelledStep made{inputs.step, make_tiles(inputs.step, problem.chip, tiling), {}};
    made.timeline = schedule(made.tiles, made.graph, problem.chip, problem.costs, problem.schedule);
    return made;
  };
  TilingOptions tiling = problem.tiling;
  tiling.mode = TilingMode::layer_by_layer;
  tiling.stacks.reset();
  const ModelledStep before = modelled(tiling);
  tiling.mode = TilingMode::fused;
  tiling.stacks = plan.stacks;
  tiling.slices = plan.slices;
  const ModelledStep best = modelled(tiling);
  write_search_report(arguments.common, inputs, json,
                      {before.result(), best.result(), &inputs.graph.graph});
}

int optimise(const Arguments& arguments, Session& session) {
  const SearchInputs inputs = prepare(arguments.common, arguments.own.objective, session);
  CoreCostCache costs;
  FusionProblem problem{inputs.step, inputs.files.chip, costs, inputs.tiling_options(),
                        inputs.schedule_options(1)};
  FusionOptions options;
  options.objective = *step_objective_named(arguments.own.objective);
  options.method = named(kMethods, arguments.own.method);
  options.recomputed_halos = problem.tiling.halo == Halo::recomputed;
  options.tiles = 6e6;
  if (arguments.own.evaluations > 0) {
    options.tiles = 0;
    options.evaluations = arguments.own.evaluations;
    options.group_evaluations = std::min<std::int64_t>(20 * options.evaluations, 1'000'000);
  }
  const SearchControl control = search_control(arguments.common, session);
  const FusionResult result = optimise_fusion(problem, options, control);
  if (!arguments.own.stacks_out.empty())
    write_file_atomically(arguments.own.stacks_out, stacks_yaml(result.plan, inputs.step.graph));
  Json json = json_of(result, inputs.step.graph,
                      search_json("fusion", inputs.experiment.name, arguments.own.objective,
                                  result.certificate, session));
  json["provenance"] = search_provenance(inputs, arguments.common);
  write_report(arguments, inputs, problem, result.plan, json);
  return finish_search(arguments.common, json, table_of(result, options.objective),
                       result.certificate, session);
}

} // namespace

Action add_optimise_fusion(CLI::App& optimise_command) {
  auto arguments = std::make_shared<Arguments>();
  FusionArguments& own = arguments->own;
  CLI::App* command =
      optimise_command.add_subcommand("fusion", "Which operators run together, slice by slice");
  arguments->common.add_to(*command);
  command->add_option("--model", own.model, "monet, or einsum: one core, operator by operator")
      ->check(CLI::IsMember({"monet", "einsum"}))
      ->capture_default_str();
  arguments->own.einsum.add_to(*command);
  command
      ->add_option("--objective", own.objective,
                   "What the plan minimises; dram: bytes to and from the off-chip memory")
      ->check(CLI::IsMember(names_of(kObjectives)))
      ->capture_default_str();
  command
      ->add_option("--method", own.method,
                   "cost: search; fewest-groups, least-traffic: the original study's objectives")
      ->check(CLI::IsMember(names_of(kMethods)))
      ->capture_default_str();
  command
      ->add_option("--evaluations", own.evaluations,
                   "Schedules of the whole step; groups on their own: 20 times as many")
      ->check(CLI::Range(1, 1'000'000));
  command
      ->add_option("--stacks-out", own.stacks_out,
                   "Write the plan for monet schedule --mode fused --stacks")
      ->type_name("S.yaml");
  command->footer("Example: monet optimise fusion --hardware data/hardware/tpu_like_quad_core.yaml "
                  "--workload data/workload/resnet18_cifar.onnx --batch 1");
  return [arguments](Session& session) -> int {
    if (arguments->own.model == "einsum" && !arguments->common.report.empty())
      throw UsageError("--report is for our own model: Einsums have no schedule to show");
    if (arguments->own.model == "einsum")
      return optimise_einsum(arguments->common, arguments->own, session);
    return optimise(*arguments, session);
  };
}

} // namespace monet::cli

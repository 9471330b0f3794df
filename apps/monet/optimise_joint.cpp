// monet optimise joint: fusion, checkpointing and allocation together.
#include "memory_budget.hpp"
#include "optimise.hpp"

#include "monet/base/files.hpp"
#include "monet/base/text.hpp"
#include "monet/optimise/joint.hpp"
#include "monet/report/graph_svg.hpp"
#include "monet/report/optimise_result.hpp"
#include "monet/report/text.hpp"
#include "monet/tiling/allocation.hpp"
#include "monet/tiling/stacks_file.hpp"
#include "monet/training/insert_recompute.hpp"
#include "monet/workload/onnx_writer.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <filesystem>
#include <memory>

namespace monet::cli {

namespace {

using Json = nlohmann::ordered_json;

struct JointArguments {
  OptimiseArguments common;
  std::string objective = "latency";
  std::string budget;
  std::int64_t levels = JointOptions{}.levels;
  std::int64_t rounds = JointOptions{}.rounds;
  std::int64_t groups = JointOptions{}.fusion_evaluations;
  std::int64_t cores = JointOptions{}.allocation_evaluations;
  std::string plan_out; ///< folder; empty: none
};

StepResult result_of(const JointPoint& point) {
  return {point.step.get(), &point.tiles, &point.timeline};
}

Json corners_json(const JointResult& result, const Chip& chip) {
  Json corners = Json::array();
  const std::pair<const char*, const JointPoint*> all[] = {{"base", &result.base},
                                                           {"fused", &result.fused},
                                                           {"checkpointed", &result.checkpointed},
                                                           {"both", &result.both}};
  for (const auto& [name, point] : all) {
    Json corner = figures_json(name, result_of(*point), chip);
    corner["way"] = point->name;
    corner["within_budget"] = result.budget_bytes == 0 || point->peak_bytes <= result.budget_bytes;
    corners.push_back(std::move(corner));
  }
  return corners;
}

/// Of what was tried: nothing else is as good in latency, energy and peak memory.
Json front_json(const JointResult& result) {
  std::vector<const JointTrial*> front;
  const auto dominates = [](const JointTrial& a, const JointTrial& b) {
    return a.latency <= b.latency && a.energy_pj <= b.energy_pj && a.peak_bytes <= b.peak_bytes;
  };
  for (const JointTrial& trial : result.trials) {
    if (std::any_of(front.begin(), front.end(),
                    [&](const JointTrial* other) { return dominates(*other, trial); }))
      continue;
    std::erase_if(front, [&](const JointTrial* other) { return dominates(trial, *other); });
    front.push_back(&trial);
  }
  Json points = Json::array();
  for (const JointTrial* trial : front) {
    points.push_back({{"latency_cycles", trial->latency},
                      {"energy_pj", trial->energy_pj},
                      {"peak_memory_bytes", trial->peak_bytes},
                      {"offchip_bytes", bytes_of(Bits{trial->dram_bits})},
                      {"stored_activations_bytes", trial->stored_bytes},
                      {"name", valid_utf8(trial->name)},
                      {"chosen", trial->name == result.both.name}});
  }
  return points;
}

Json groups_json(const JointPoint& point) {
  const std::vector<std::uint32_t> group = groups_of(point.tiles);
  Json groups = Json::array();
  for (std::size_t i = 0; i < group.size(); ++i) {
    if (group[i] == kAlone)
      continue;
    while (groups.size() <= group[i])
      groups.push_back({{"operators", Json::array()}});
    groups[group[i]]["operators"].push_back(valid_utf8(point.step->graph.operators()[i].name));
  }
  return groups;
}

/// Operators that run again, by name.
Json recomputed_json(const JointPoint& point) {
  Json names = Json::array();
  for (const Operator& op : point.step->graph.operators()) {
    if (op.phase == Phase::recompute)
      names.push_back(valid_utf8(op.name));
  }
  return names;
}

std::string table_of(const Json& json, const Certificate& found) {
  std::string text = json.at("name").get<std::string>() + "\n\n" +
                     compared_table(json.at("compared")) + "\n" +
                     "best way: " + json.at("compared").back().at("way").get<std::string>() + "\n";
  if (json.contains("budget_bytes"))
    text += fmt::format("budget: {}, peak {}\n",
                        human_bytes(json.at("budget_bytes").get<std::int64_t>()),
                        human_bytes(json.at("peak_bytes").get<std::int64_t>()));
  text += fmt::format("gap to the bound: {}\n", gap_text(found));
  return json.contains("repeat") ? text + "repeat: " + json.at("repeat").get<std::string>() + "\n"
                                 : text;
}

/// Those that monet schedule would choose otherwise.
std::string cost_options(const Experiment& experiment) {
  std::string options;
  if (experiment.core_cost.objective != Objective::latency)
    options += fmt::format(" --objective {}", name_of(experiment.core_cost.objective));
  const int limit = experiment.core_cost.lpf_limit;
  if (limit != CoreCostOptions{}.lpf_limit)
    options += " --lpf-limit " + std::to_string(limit);
  for (const std::string& name : kTransferRules)
    if (!(experiment.rules.*transfer_rule_named(name)))
      options += fmt::format(" --stream-like {}", name);
  return options;
}

/// The step, its stacks and its cores as files, and the command that schedules them.
std::string write_plan(const std::string& folder, const JointPoint& point,
                       const SearchInputs& inputs) {
  make_folder(folder);
  const auto path = [&](const char* name) {
    return (std::filesystem::path(folder) / name).string();
  };
  std::string command = fmt::format("monet schedule --hardware {} --workload {}",
                                    inputs.experiment.hardware, path("step.onnx"));
  const TrainingGraph step =
      point.runs.empty() ? inputs.graph : with_recomputation(inputs.graph, inputs.step, point.runs);
  write_file_atomically(path("step.onnx"), write_onnx(step.graph));
  if (point.tiling.mode == TilingMode::fused) {
    command += " --mode fused";
    if (point.tiling.stacks) {
      write_file_atomically(
          path("stacks.yaml"),
          stacks_yaml({*point.tiling.stacks, point.tiling.slices}, point.step->graph));
      command += " --stacks " + path("stacks.yaml");
    }
    if (inputs.experiment.halo == Halo::recomputed)
      command += " --halo recomputed";
  }
  const MappingFile* base = inputs.files.mapping ? &*inputs.files.mapping : nullptr;
  if (point.allocation) {
    write_file_atomically(path("mapping.yaml"),
                          mapping_text(mapping_of(*point.allocation, point.step->graph, base)));
    command += " --mapping " + path("mapping.yaml");
  } else if (base != nullptr) {
    command += " --mapping " + inputs.experiment.mapping;
  }
  if (point.priority != Priority::latency)
    command += fmt::format(" --priority {}", name_of(point.priority));
  return command + cost_options(inputs.experiment);
}

int run_joint(const JointArguments& arguments, Session& session) {
  if (!arguments.budget.empty())
    parse_budget(arguments.budget, 100, "--budget"); // before anything takes time
  const OptimiseArguments& common = arguments.common;
  const SearchInputs inputs = prepare(common, arguments.objective, session);
  JointOptions options;
  options.objective = *step_objective_named(arguments.objective);
  options.levels = inputs.experiment.training ? arguments.levels : 0;
  options.rounds = arguments.rounds;
  options.fusion_evaluations = arguments.groups;
  options.allocation_evaluations = arguments.cores;
  options.tiling = inputs.tiling_options();
  options.schedule = inputs.schedule_options(1);
  if (!arguments.budget.empty()) {
    options.budget = [&](std::int64_t whole) {
      return parse_budget(arguments.budget, whole, "--budget");
    };
  }
  const SearchControl control = search_control(common, session);
  const JointResult result = optimise_jointly(inputs.step, inputs.files.chip, options, control);
  const bool within = result.budget_bytes == 0 || result.both.peak_bytes <= result.budget_bytes;
  if (!within && !result.found.interrupted) {
    throw InfeasibleError(fmt::format(
        "no way to run the step within {} bytes was found: the least has a peak of {}, {} more",
        result.budget_bytes, result.both.peak_bytes, result.both.peak_bytes - result.budget_bytes));
  }
  Json json =
      search_json("joint", inputs.experiment.name, arguments.objective, result.found, session);
  json["peak_bytes"] = result.both.peak_bytes;
  if (result.budget_bytes > 0)
    json["budget_bytes"] = result.budget_bytes;
  json["evaluations"] = result.trials.size();
  json["compared"] = corners_json(result, inputs.files.chip);
  json["front"] = front_json(result);
  json["groups"] = groups_json(result.both);
  json["recomputed"] = recomputed_json(result.both);
  if (!arguments.plan_out.empty())
    json["repeat"] = valid_utf8(write_plan(arguments.plan_out, result.both, inputs));
  json["provenance"] = search_provenance(inputs, common);
  write_search_report(common, inputs, json, {result_of(result.base), result_of(result.both)});
  return finish_search(common, json, table_of(json, result.found), result.found, session);
}

} // namespace

Action add_optimise_joint(CLI::App& optimise) {
  auto arguments = std::make_shared<JointArguments>();
  CLI::App* command =
      optimise.add_subcommand("joint", "Fusion, checkpointing and allocation together");
  arguments->common.add_to(*command);
  command->add_option("--objective", arguments->objective, "What is minimised")
      ->check(CLI::IsMember({"latency", "energy", "edp", "dram"}))
      ->capture_default_str();
  command
      ->add_option("--budget", arguments->budget,
                   "Most memory that may be live at once: bytes, MiB, or a percentage of the peak "
                   "layer by layer; without it, as much as it takes")
      ->type_name("BYTES|MiB|%");
  command
      ->add_option("--levels", arguments->levels,
                   "Limits of memory for which recomputation is planned; 0 = none runs again")
      ->check(CLI::Range(0, 1000))
      ->capture_default_str();
  command
      ->add_option("--rounds", arguments->rounds,
                   "Rounds of planning, each with the costs of the best schedule so far")
      ->check(CLI::Range(1, 100))
      ->capture_default_str();
  command
      ->add_option("--group-evaluations", arguments->groups,
                   "Schedules of each search for fused groups; 0 = the tool's usual groups")
      ->check(CLI::Range(0, 1'000'000))
      ->capture_default_str();
  command
      ->add_option("--core-evaluations", arguments->cores,
                   "Schedules of each search for the operators' cores; 0 = the tool's usual cores")
      ->check(CLI::Range(0, 1'000'000))
      ->capture_default_str();
  command
      ->add_option("--plan-out", arguments->plan_out,
                   "Folder for the best way as files that monet schedule takes: step.onnx, "
                   "stacks.yaml, mapping.yaml")
      ->type_name("DIR");
  command->footer("Example: monet optimise joint --hardware data/hardware/tpu_like_quad_core.yaml "
                  "--workload data/workload/resnet18_cifar.onnx --batch 1 --training "
                  "data/training/adam.yaml --budget 90%");
  return [arguments](Session& session) { return run_joint(*arguments, session); };
}

} // namespace monet::cli

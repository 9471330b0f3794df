// monet optimise joint: searches for fusion, checkpointing and allocation together. Calls the joint
// search and writes its result.
#include "commands/optimise.hpp"
#include "options/memory_budget.hpp"
#include "options/paired_steps.hpp"
#include "report/shared/text.hpp"

#include "monet/base/errors.hpp"
#include "monet/base/files.hpp"
#include "monet/optimise/joint.hpp"
#include "monet/tiling/allocation.hpp"
#include "monet/tiling/stacks_file.hpp"
#include "monet/training_graph/training.hpp"
#include "monet/workload/onnx_writer.hpp"

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include <filesystem>
#include <memory>
#include <optional>

namespace monet::cli {

namespace {

struct JointArguments {
  OptimiseArguments common;
  JointOptions search;
  std::string budget;
  std::optional<std::int64_t> evaluations; ///< evaluations of each part
  std::optional<std::int64_t> groups;
  std::optional<std::int64_t> cores;
  std::string plan_out; ///< folder; may be empty

  std::string objective() const { return std::string(name_of(search.objective)); }
};

StepOptions step_options(const JointPoint& point, const ScheduleOptions& schedule) {
  StepOptions options{point.tiling, schedule, {}};
  options.schedule.priority = point.priority;
  return options;
}

/// Step of a point with its views, for export as ONNX.
TrainingGraph export_of(const JointPoint& point, const SearchInputs& inputs) {
  return point.runs.empty() ? inputs.graph
                            : with_recomputation(inputs.graph, inputs.step, point.runs);
}

/// Writes the folder of --report, which compares the best point with the base.
void write_report(const OptimiseArguments& common, const SearchInputs& inputs,
                  const JointResult& result, const ScheduleOptions& schedule, const Json& json) {
  if (common.report.empty())
    return;
  CoreCostCache costs;
  const auto modelled = [&](const JointPoint& point) {
    return model_step(*point.step, inputs.files.chip, step_options(point, schedule), {costs});
  };
  const ModelledStep base = modelled(result.base);
  const ModelledStep best = modelled(result.both);
  const TrainingGraph step = export_of(result.both, inputs);
  write_search_report(
      common, inputs, json,
      {result_of(*result.base.step, base), result_of(*result.both.step, best), &step.graph});
}

/// Options for core costs and transfers that differ from the defaults of monet schedule.
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

/// Writes the step, its stacks and its cores as files. Returns the command that schedules them.
std::string write_plan(const std::string& folder, const JointPoint& point,
                       const SearchInputs& inputs) {
  make_folder(folder);
  const auto path = [&](const char* name) {
    return (std::filesystem::path(folder) / name).string();
  };
  std::string command = fmt::format("monet schedule --hardware {} --workload {}",
                                    inputs.experiment.hardware, path("step.onnx"));
  write_file_atomically(path("step.onnx"), write_onnx(export_of(point, inputs).graph));
  if (point.tiling.mode == TilingMode::fused) {
    const FusionPlan plan = fusion_of(*point.step, inputs.files.chip, point.tiling);
    write_file_atomically(path("stacks.yaml"), stacks_yaml(plan, point.step->graph));
    command += " --mode fused --stacks " + path("stacks.yaml");
    if (inputs.experiment.halo == Halo::recomputed)
      command += " --halo recomputed";
  } else {
    command += " --mode layer-by-layer";
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

JointOptions options_of(const JointArguments& arguments, const SearchInputs& inputs) {
  JointOptions options = arguments.search;
  options.fusion.tiles = kTilesOfDefaultEffort;
  if (const auto given = arguments.groups ? arguments.groups : arguments.evaluations) {
    options.fusion.evaluations = *given;
    options.fusion.limit_effort();
  }
  if (const auto given = arguments.cores ? arguments.cores : arguments.evaluations)
    options.allocation_evaluations = *given;
  if (!inputs.experiment.training)
    options.levels = 0;
  options.fusion.recomputed_halos = inputs.experiment.halo == Halo::recomputed;
  options.tiling = inputs.tiling_options();
  options.schedule = inputs.schedule_options(1);
  return options;
}

int run_joint(const JointArguments& arguments, Session& session) {
  if (!arguments.budget.empty())
    parse_budget(arguments.budget, 100, "--budget"); // reports errors before any work
  const OptimiseArguments& common = arguments.common;
  const SearchInputs given = prepare(common, arguments.objective(), session);
  CoreCostCache costs;
  const SearchControl control = search_control(common, session);
  PairedSteps steps(given, arguments.search.objective, costs, control, session);
  std::optional<std::int64_t> budget; // budget of the first step, for all steps
  const auto answer = steps.search(
      control,
      [&](const SearchInputs& of, const SearchControl& part) {
        JointOptions options = options_of(arguments, of);
        if (!arguments.budget.empty()) {
          options.budget = [&](std::int64_t whole) {
            if (!budget)
              budget = parse_budget(arguments.budget, whole, "--budget");
            return *budget;
          };
        }
        return session.stage(
            "search", [&] { return optimise_jointly(of.step, of.files.chip, options, part); },
            [&](const JointResult& found) {
              check_answer(of, *found.both.step, step_options(found.both, options.schedule),
                           found.both.figures, found.found);
              internal_check(found.within_budget(found.both.figures), "a plan is above its budget");
            });
      },
      [](auto& found) -> auto& { return found.found; });
  const SearchInputs& inputs = *answer.inputs;
  const JointResult& result = answer.result;
  Json json = joint_json({"joint", inputs.experiment.name, arguments.objective(), result.found,
                          session.progress.seconds()},
                         result);
  steps.add_to(json);
  if (!arguments.plan_out.empty())
    json["repeat"] = valid_utf8(write_plan(arguments.plan_out, result.both, inputs));
  json["provenance"] = search_provenance(inputs, common);
  write_report(common, inputs, result, inputs.schedule_options(1), json);
  return finish_search(common, json, joint_table(json, result.found) + steps.line(), result.found,
                       session);
}

} // namespace

void add_optimise_joint(Command& optimise) {
  auto arguments = std::make_shared<JointArguments>();
  Command& command =
      optimise.add_command("joint", "Search fusion, checkpointing and allocation together");
  arguments->common.add_to(command);
  command.add("--objective", named_value<kFusionObjectives>(arguments->search.objective),
              "Objective to minimise");
  command.add("--budget", &arguments->budget,
              "Maximum live memory: bytes, MiB, or a percentage of the layer-by-layer peak; "
              "default: no limit",
              {.type = "BYTES|MiB|%"});
  command.add("--levels", &arguments->search.levels,
              "Number of memory amounts for which recomputation is planned; 0: no recomputation",
              {.range = Range{0, 1000}});
  command.add("--rounds", &arguments->search.rounds,
              "Number of planning rounds, each with the costs of the best schedule so far",
              {.range = Range{1, 100}});
  command.add("--evaluations", &arguments->evaluations,
              "Schedules of the group search and of the core search; default: as optimise fusion "
              "and optimise allocation",
              {.range = Range{1, 1'000'000}});
  command.add("--group-evaluations", &arguments->groups,
              "Schedules of the group search; 0: default groups only",
              {.range = Range{0, 1'000'000}});
  command.add("--core-evaluations", &arguments->cores,
              "Schedules of the core search; 0: default cores only",
              {.range = Range{0, 1'000'000}});
  command.add(
      "--plan-out", &arguments->plan_out,
      "Folder for the best plan as files for monet schedule: step.onnx, stacks.yaml, mapping.yaml",
      {.type = "DIR", .output = Output::folder});
  command.footer = "Example: monet optimise joint --hardware data/hardware/tpu_like_quad_core.yaml "
                   "--workload data/workload/resnet18_cifar.onnx --batch 1 --training "
                   "data/training/adam.yaml --budget 90%";
  command.action = [arguments](Session& session) { return run_joint(*arguments, session); };
}

} // namespace monet::cli

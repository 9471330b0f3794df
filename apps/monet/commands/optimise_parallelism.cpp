// monet optimise parallelism: searches for the best distribution of a training step over the
// devices of a cluster. Calls the planner of the cluster stage.
#include "base/shared/text.hpp"
#include "commands/optimise.hpp"
#include "options/cluster_experiment.hpp"
#include "report/shared/cluster_result.hpp"

#include "monet/base/errors.hpp"
#include "monet/base/files.hpp"

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include <filesystem>
#include <memory>

namespace monet::cli {

namespace {

struct ParallelismArguments {
  OptimiseArguments common; ///< experiment, limits, threads and JSON
  std::string folder;
  std::string objective = "latency";
  std::vector<std::string> settings;
};

/// Throws InfeasibleError for a search without a fitting strategy. The message contains the
/// strategy with the lowest memory, or the reason why no strategy divides the network.
[[noreturn]] void refuse(const PlannerResult& found) {
  const PlannerResult::Counts& counts = found.counts;
  std::string text = fmt::format("none of {} strategies fits into {} a device",
                                 group_digits(counts.all()), human_bytes(found.memory_limit));
  if (counts.impossible == counts.all())
    text = "no strategy divides the network: " + found.why_impossible;
  else if (found.smallest)
    text += fmt::format("; {} needs {}", to_string(found.smallest->strategy),
                        human_bytes(found.smallest->memory));
  throw InfeasibleError(text);
}

Provenance provenance_of_search(const ParallelismArguments& arguments,
                                const ClusterExperiment& experiment, const ClusterInputs& inputs) {
  Provenance provenance = provenance_of(experiment, inputs);
  add_settings(arguments.settings, provenance);
  if (arguments.common.time_limit > 0)
    provenance.options["time_limit_seconds"] = fmt::format("{}", arguments.common.time_limit);
  return provenance;
}

int plan(const ParallelismArguments& arguments, Session& session) {
  limit_time(arguments.common, session);
  session.context.jobs = arguments.common.jobs;
  const ClusterExperiment experiment =
      read_cluster_experiment(arguments.common.experiment, arguments.settings, ParallelForm::space);
  const ClusterInputs inputs =
      session.stage("read files", [&] { return read_cluster_inputs(experiment); });
  PlannerOptions options;
  options.front = arguments.objective == "front";
  options.objective = objective_named(arguments.objective).value_or(Objective::latency);
  const SearchControl control = search_control(arguments.common, session);
  const PlannerResult found = session.stage("search", [&] {
    return plan_parallelism(inputs.cluster, inputs.device, inputs.workload, experiment.space,
                            options, control);
  });
  if (!found.best)
    refuse(found);
  const ClusterStep step =
      ClusterModel(inputs.cluster, inputs.device, inputs.workload).model(found.best->strategy);
  internal_check(step.time == found.best->time && step.largest_memory == found.best->memory,
                 "the best strategy is not what the search took it for");
  const Provenance provenance = provenance_of_search(arguments, experiment, inputs);
  ClusterResult best{experiment.name, &inputs.cluster, &inputs.device, &inputs.workload, {}, &step};
  best.network = std::filesystem::path(experiment.settings.network).filename().string();
  const Json json =
      parallelism_json({&best, &found, arguments.objective, session.progress.seconds(),
                        fmt::format("monet cluster {}", arguments.common.experiment)},
                       provenance);
  std::string table = parallelism_table(json);
  if (!arguments.folder.empty()) {
    make_folder(arguments.folder);
    write_json(path_in(arguments.folder, "parallelism.json"), json);
    write_file_atomically(path_in(arguments.folder, "report.html"), page_of(json));
    write_cluster_report(path_in(arguments.folder, "best"), cluster_json(best, provenance));
    table += fmt::format("\nreport: {}\n", path_in(arguments.folder, "report.html"));
  }
  return finish_search(arguments.common, json, table, found.certificate, session);
}

} // namespace

void add_optimise_parallelism(Command& optimise) {
  auto arguments = std::make_shared<ParallelismArguments>();
  Command& command = optimise.add_command(
      "parallelism", "Search how to divide a training step over the devices of a cluster");
  OptimiseArguments& common = arguments->common;
  command.add("experiment", &common.experiment,
              "Experiment file (YAML) of monet cluster; keys of 'parallel' may be lists, missing "
              "keys are free",
              {.type = "EXPERIMENT.yaml", .required = true});
  command.add("--objective", &arguments->objective,
              "Objective to minimise; front: latency, plus all strategies that are Pareto-optimal "
              "in time and memory",
              {.choices = {"latency", "energy", "memory", "front"}});
  command.add("--set", &arguments->settings,
              "New value or list for a key of the experiment's 'parallel'; may be repeated",
              {.type = "KEY=VALUE", .repeated = true});
  common.add_limits_to(command, false);
  command.add(
      "-o,--output", &arguments->folder,
      "Folder for parallelism.json and report.html; its folder best/: the files of monet cluster",
      {.type = "DIR", .output = Output::folder});
  command.footer = "Example: monet optimise parallelism examples/cluster/gpt3_175b_plan.yaml";
  command.action = [arguments](Session& session) { return plan(*arguments, session); };
}

} // namespace monet::cli

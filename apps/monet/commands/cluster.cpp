// monet cluster EXPERIMENT.yaml: models one training step that is distributed over the devices of a
// cluster, and writes its result.
#include "commands/commands.hpp"
#include "options/cluster_experiment.hpp"
#include "options/unused_options.hpp"
#include "pipeline.hpp"
#include "report/shared/cluster_result.hpp"

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include <filesystem>
#include <memory>

namespace monet::cli {

namespace {

struct ClusterArguments {
  std::string experiment;
  std::string folder;
  std::string json;
  std::vector<std::string> settings;
  bool allow_overflow = false;
};

Provenance options_of(const ClusterArguments& arguments, Provenance provenance) {
  add_settings(arguments.settings, provenance);
  if (arguments.allow_overflow)
    provenance.options["allow-overflow"] = "on";
  return provenance;
}

int model_cluster(const ClusterArguments& arguments, Session& session) {
  const ClusterExperiment experiment =
      read_cluster_experiment(arguments.experiment, arguments.settings);
  const ClusterInputs inputs =
      session.stage("read files", [&] { return read_cluster_inputs(experiment); });
  const ClusterStep step = session.stage("model", [&] {
    return ClusterModel(inputs.cluster, inputs.device, inputs.workload).model(experiment.strategy);
  });
  const std::string overflow = memory_overflow(step);
  if (!overflow.empty() && !arguments.allow_overflow)
    throw InfeasibleError(overflow + "; --allow-overflow models it anyway");
  warn_of_unused(experiment, inputs, step);
  const auto [json, table] = session.stage("write results", [&] {
    ClusterResult result{
        experiment.name, &inputs.cluster, &inputs.device, &inputs.workload, {}, &step};
    result.network = std::filesystem::path(experiment.settings.network).filename().string();
    Json made = cluster_json(result, options_of(arguments, provenance_of(experiment, inputs)));
    std::string text = cluster_table(made);
    if (!arguments.folder.empty())
      text += fmt::format("\nreport: {}\n", write_cluster_report(arguments.folder, made));
    return std::pair(std::move(made), std::move(text));
  });
  write_output(arguments.json, json, table);
  return kExitOk;
}

} // namespace

void add_cluster_command(Command& monet) {
  auto arguments = std::make_shared<ClusterArguments>();
  Command& command =
      monet.add_command("cluster", "Model a training step on the devices of a cluster");
  command.add("experiment", &arguments->experiment, "Experiment file (YAML)",
              {.type = "EXPERIMENT.yaml", .required = true});
  command.add("-o,--output", &arguments->folder,
              "Folder for cluster.json, report.html and trace.json",
              {.type = "DIR", .output = Output::folder});
  command.add("--json", &arguments->json, "File for cluster.json; -: standard output",
              {.type = "FILE", .output = Output::file});
  command.add("--set", &arguments->settings,
              "New value of a key of the experiment's 'parallel'; may be repeated",
              {.type = "KEY=VALUE", .repeated = true});
  command.add("--allow-overflow", &arguments->allow_overflow,
              "Model steps that exceed the devices' memory, too");
  command.footer = "Example: monet cluster examples/cluster/gpt3_175b.yaml -o out/gpt3";
  command.action = [arguments](Session& session) { return model_cluster(*arguments, session); };
}

} // namespace monet::cli

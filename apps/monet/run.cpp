// monet run EXPERIMENT.yaml: models the experiment and writes everything there is to see.
#include "commands.hpp"
#include "network_options.hpp"
#include "optimise.hpp"
#include "pipeline.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <filesystem>
#include <memory>

namespace monet::cli {

namespace {

struct RunArguments {
  std::string experiment;
  std::string folder;
  NetworkArguments network; ///< what it gives replaces what the file says
  int jobs = 1;
  bool verify = false;
};

Experiment read_with(const RunArguments& arguments) {
  const OnnxReadOptions given = arguments.network.options();
  Experiment experiment = read_experiment(arguments.experiment);
  OnnxReadOptions& options = experiment.network_options;
  if (given.batch)
    options.batch = given.batch;
  for (const auto& [name, value] : given.dimensions)
    options.dimensions[name] = value;
  return experiment;
}

int run_experiment(const RunArguments& arguments, Session& session) {
  session.context.jobs = arguments.jobs;
  session.context.verify = arguments.verify;
  const Experiment experiment = read_with(arguments);
  const std::filesystem::path folder =
      arguments.folder.empty()
          ? std::filesystem::path("out") / std::filesystem::path(arguments.experiment).stem()
          : std::filesystem::path(arguments.folder);
  if (experiment.optimise)
    return run_optimised(experiment, folder.string(), session);
  const Model model = make_model(experiment, session);
  const auto [table, report] = session.stage("write results", [&] {
    const nlohmann::ordered_json result = model.json(experiment.name);
    const Graph& graph =
        model.training_graph ? model.training_graph->graph : model.step.graph.graph;
    return std::pair(summary_table(result), write_results(folder.string(), result, graph));
  });
  print_result(fmt::format("{}\nreport: {}\n", table, report));
  return kExitOk;
}

} // namespace

Action add_run_command(CLI::App& app) {
  auto arguments = std::make_shared<RunArguments>();
  CLI::App* command = app.add_subcommand("run", "Models an experiment and writes its report");
  command->add_option("experiment", arguments->experiment, "Experiment file (YAML)")
      ->required()
      ->type_name("EXPERIMENT.yaml");
  command
      ->add_option("-o,--output", arguments->folder,
                   "Folder for result.json, report.html, trace.json and training.onnx; "
                   "default: out/<name of the experiment file>")
      ->type_name("DIR");
  arguments->network.add_to(*command);
  command
      ->add_option("--jobs", arguments->jobs,
                   "Threads (0 = all cores); results do not depend on it")
      ->check(CLI::Range(0, 4096))
      ->capture_default_str();
  command->add_flag("--verify", arguments->verify, "Check the invariants of every stage's product");
  command->footer("Example: monet run examples/edge_resnet18_cifar.yaml -o out/edge");
  return [arguments](Session& session) { return run_experiment(*arguments, session); };
}

} // namespace monet::cli

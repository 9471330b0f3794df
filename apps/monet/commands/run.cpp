// monet run EXPERIMENT.yaml: models the experiment and writes everything there is to see.
#include "commands/alternate.hpp"
#include "commands/commands.hpp"
#include "commands/optimise.hpp"
#include "options/network_options.hpp"
#include "pipeline.hpp"

#include "monet/report/text.hpp"

#include <fmt/core.h>
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
  if (!arguments.network.precision.empty())
    experiment.precision = arguments.network.precision_or_files();
  return experiment;
}

int run_experiment(const RunArguments& arguments, Session& session) {
  session.context.jobs = arguments.jobs;
  session.context.verify = arguments.verify;
  const std::filesystem::path folder =
      arguments.folder.empty()
          ? std::filesystem::path("out") / std::filesystem::path(arguments.experiment).stem()
          : std::filesystem::path(arguments.folder);
  session.outputs.folder(folder.string());
  const Experiment experiment = read_with(arguments);
  if (!experiment.alternate.empty())
    return run_alternating(experiment, folder.string(), session);
  if (experiment.optimise)
    return run_optimised(experiment, folder.string(), session);
  const Model model = make_model(experiment, session);
  const auto [table, report] = session.stage("write results", [&] {
    const Json result = model.json(experiment.name);
    const Graph& graph =
        model.training_graph ? model.training_graph->graph : model.step.graph.graph;
    return std::pair(summary_table(result), write_results(folder.string(), result, graph));
  });
  print_result(fmt::format("{}\nreport: {}\n", table, printable(report)));
  return kExitOk;
}

} // namespace

void add_run_command(Command& monet) {
  auto arguments = std::make_shared<RunArguments>();
  Command& command = monet.add_command("run", "Models an experiment and writes its report");
  command.add("experiment", &arguments->experiment, "Experiment file (YAML)",
              {.type = "EXPERIMENT.yaml", .required = true});
  command.add("-o,--output", &arguments->folder,
              "Folder for result.json, report.html, trace.json and training.onnx; "
              "default: out/<name of the experiment file>",
              {.type = "DIR", .output = Output::folder});
  arguments->network.add_to(command);
  command.add("--jobs", &arguments->jobs, "Threads (0 = all cores); results do not depend on it",
              {.range = Range{0, 4096}});
  command.add("--verify", &arguments->verify, "Check the invariants of every stage's product");
  command.footer = "Example: monet run examples/edge_resnet18_cifar.yaml -o out/edge";
  command.action = [arguments](Session& session) { return run_experiment(*arguments, session); };
}

} // namespace monet::cli

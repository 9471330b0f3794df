// monet run EXPERIMENT.yaml: models the experiment through all stages and writes all results.
#include "base/shared/text.hpp"
#include "commands/commands.hpp"
#include "commands/optimise.hpp"
#include "options/network_options.hpp"
#include "pipeline.hpp"
#include "report/shared/text.hpp"

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <filesystem>
#include <map>
#include <memory>

namespace monet::cli {

namespace {

struct RunArguments {
  std::string experiment;
  std::string folder;
  NetworkArguments network; ///< replaces values of the file
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

/// Memory that a step keeps while other steps run: bytes by name. Weights and buffers belong to the
/// network, optimiser states to the step.
std::map<std::string, std::int64_t> permanent_bytes(const TrainingGraph& step,
                                                    const std::string& name) {
  std::map<std::string, std::int64_t> bytes;
  for (const Tensor& tensor : step.graph.tensors()) {
    const bool state = tensor.kind == TensorKind::optimizer_state;
    const bool weight = tensor.kind == TensorKind::parameter || tensor.kind == TensorKind::buffer;
    if (tensor.producer || tensor.alias_of || (!state && !weight) || tensor.consumers.empty())
      continue;
    bytes.emplace(state ? name + '\n' + tensor.name : tensor.name, bytes_of(size_of(tensor)));
  }
  return bytes;
}

struct TimedPart {
  std::string name;
  std::int64_t repeat = 1;
  StepFigures figures;
  std::map<std::string, std::int64_t> permanent;
};

TimedPart model_turn(const Experiment& experiment, const AlternateStep& step,
                     const std::string& folder, Session& session) {
  Experiment one = experiment;
  one.alternate.clear();
  one.training = step.options;
  one.name = fmt::format("{}: {}", experiment.name, step.name);
  const Model model = make_model(one, session);
  const std::string written = (std::filesystem::path(folder) / step.name).string();
  session.stage(step.name + ": write results", [&] {
    return write_results(written, model.json(one.name), model.training_graph->graph);
  });
  if (session.kept != nullptr)
    *session.kept += (session.kept->empty() ? "" : ", ") + written;
  return {step.name, step.repeat, model.step.modelled.figures,
          permanent_bytes(model.step.graph, step.name)};
}

/// Peak memory during a turn, including the tensors that other steps keep in memory.
std::int64_t peak_of(const TimedPart& turn, const std::vector<TimedPart>& all) {
  std::map<std::string, std::int64_t> others;
  for (const TimedPart& other : all)
    others.insert(other.permanent.begin(), other.permanent.end());
  std::int64_t peak = turn.figures.peak_memory_bytes;
  for (const auto& [name, bytes] : others)
    peak += turn.permanent.count(name) != 0 ? 0 : bytes;
  return peak;
}

Json iteration_json(const std::string& name, const std::vector<TimedPart>& turns) {
  Json steps = Json::array();
  std::int64_t cycles = 0;
  std::int64_t peak = 0;
  double energy = 0;
  for (const TimedPart& turn : turns) {
    const std::int64_t own_peak = peak_of(turn, turns);
    steps.push_back({{"name", valid_utf8(turn.name)},
                     {"repeat", turn.repeat},
                     {"latency_cycles", turn.figures.latency_cycles},
                     {"energy_pj", turn.figures.energy_pj},
                     {"peak_memory_bytes", own_peak},
                     {"result", valid_utf8(turn.name) + "/result.json"}});
    cycles += turn.repeat * turn.figures.latency_cycles;
    energy += static_cast<double>(turn.repeat) * turn.figures.energy_pj;
    peak = std::max(peak, own_peak);
  }
  return {{"schema_version", 1}, {"name", valid_utf8(name)},  {"latency_cycles", cycles},
          {"energy_pj", energy}, {"peak_memory_bytes", peak}, {"steps", std::move(steps)}};
}

std::string iteration_table(const Json& iteration) {
  std::vector<std::vector<std::string>> rows{
      {"step", "in a row", "latency (cycles)", "energy", "peak memory"}};
  const auto row = [&](const std::string& name, const std::string& times, const Json& of) {
    rows.push_back({name, times, group_digits(of.at("latency_cycles").get<std::int64_t>()),
                    human_energy(of.at("energy_pj").get<double>()),
                    human_bytes(of.at("peak_memory_bytes").get<std::int64_t>())});
  };
  for (const Json& step : iteration.at("steps"))
    row(printable(step.at("name").get_ref<const std::string&>()),
        group_digits(step.at("repeat").get<std::int64_t>()), step);
  row("an iteration", "", iteration);
  return aligned_table(rows);
}

/// Models alternating steps on one chip, each into a separate folder, and writes iteration.json
/// with the cost of one iteration.
int run_alternating(const Experiment& experiment, const std::string& folder, Session& session) {
  std::vector<TimedPart> turns;
  for (const AlternateStep& step : experiment.alternate)
    turns.push_back(model_turn(experiment, step, folder, session));
  const Json iteration = iteration_json(experiment.name, turns);
  write_json(path_in(folder, "iteration.json"), iteration);
  print_result(fmt::format("{}\n\n{}\niteration: {}\n", printable(experiment.name),
                           iteration_table(iteration),
                           printable(path_in(folder, "iteration.json"))));
  return kExitOk;
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
  Command& command = monet.add_command("run", "Model an experiment and write its report");
  command.add("experiment", &arguments->experiment, "Experiment file (YAML)",
              {.type = "EXPERIMENT.yaml", .required = true});
  command.add("-o,--output", &arguments->folder,
              "Folder for result.json, report.html, trace.json and training.onnx; "
              "default: out/<name of the experiment file>",
              {.type = "DIR", .output = Output::folder});
  arguments->network.add_to(command);
  command.add("--jobs", &arguments->jobs,
              "Number of threads (0: all cores); results do not depend on it",
              {.range = Range{0, 4096}});
  command.add("--verify", &arguments->verify, "Check the invariants of every stage's result");
  command.footer = "Example: monet run examples/edge_resnet18_cifar.yaml -o out/edge";
  command.action = [arguments](Session& session) { return run_experiment(*arguments, session); };
}

} // namespace monet::cli

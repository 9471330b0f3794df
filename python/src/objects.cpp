// Reads networks, chips and steps, schedules a step on a chip, and writes results. Called by the
// bindings in module.cpp.
#include "objects.hpp"

#include "call_warnings.hpp"
#include "options/network_options.hpp"

#include "monet/base/files.hpp"
#include "monet/base/yaml.hpp"
#include "monet/hardware/read_hardware.hpp"
#include "monet/training_graph/training.hpp"
#include "monet/workload/imported_steps.hpp"
#include "monet/workload/onnx_writer.hpp"

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include <filesystem>

namespace monet::python {

namespace {

std::string stem(const std::string& path) {
  return std::filesystem::path(path).stem().string();
}

/// A scope with given warnings. Results that are written during its lifetime include them.
class GivenWarnings {
public:
  explicit GivenWarnings(const std::vector<InputProblem>& warnings) {
    for (const InputProblem& warning : warnings)
      scope_.add(warning);
  }
  std::vector<InputProblem> sorted() const { return scope_.warnings(); }

private:
  WarningScope scope_;
};

/// The warnings of all parts without duplicates, in the order in which commands write them.
std::vector<InputProblem> merged(const std::vector<std::vector<InputProblem>>& parts) {
  std::vector<InputProblem> all;
  for (const std::vector<InputProblem>& part : parts)
    all.insert(all.end(), part.begin(), part.end());
  return GivenWarnings(all).sorted();
}

cli::Experiment experiment_of(const Step& step, const PyChip& chip,
                              const ScheduleArguments& arguments) {
  cli::Experiment experiment;
  experiment.name = fmt::format("{} on {}", stem(step.network.path), chip.name);
  experiment.network = step.network.path;
  experiment.network_options = step.network.options;
  experiment.hardware = chip.chip->origin;
  experiment.mapping = arguments.mapping;
  experiment.training = step.training;
  experiment.precision = step.precision;
  experiment.files = step.files;
  cli::check_stacks(arguments);
  experiment.set(arguments);
  experiment.core_cost = arguments.cost;
  return experiment;
}

} // namespace

Network read_network(const std::string& path, std::optional<std::int64_t> batch,
                     const std::map<std::string, std::int64_t>& dimensions) {
  Network network;
  network.path = path;
  network.options.batch = batch;
  for (const auto& [name, size] : dimensions) {
    if (size < 1)
      throw cli::UsageError(fmt::format("dimensions: '{}' must be positive, is {}", name, size));
    network.options.dimensions.emplace(name, size);
  }
  if (batch && *batch < 1)
    throw cli::UsageError(fmt::format("batch must be positive, is {}", *batch));
  network.graph = std::make_shared<const Graph>(cli::read_network(path, network.options));
  return network;
}

PyChip read_chip_file(const std::string& path) {
  CallWarnings warnings;
  auto chip = std::make_shared<const Chip>(read_chip(path));
  return {std::move(chip), stem(path), warnings.scope().warnings()};
}

PyChip read_chip_texts(const std::string& name, const std::map<std::string, std::string>& texts) {
  const GivenFiles given(texts);
  CallWarnings warnings;
  const auto chip = std::make_shared<const Chip>(read_chip(name));
  return {chip, chip->name, warnings.scope().warnings()};
}

Step training_step(const Network& network, const std::string& text, const std::string& origin,
                   bool file) {
  CallWarnings warnings;
  ProblemList problems;
  Step step{network, read_training_options(parse_yaml(text, origin), problems), {}, {}};
  problems.throw_if_any();
  if (file)
    step.files.push_back(origin);
  step.warnings = warnings.scope().warnings();
  return step;
}

Step inference_step(const Network& network, const std::string& precision) {
  CallWarnings warnings;
  Step step{network, {}, {}, {}};
  if (!precision.empty()) {
    ProblemList problems;
    step.precision = read_precision_options(parse_yaml(precision, "precision"), problems);
    problems.throw_if_any();
  }
  step.warnings = warnings.scope().warnings();
  return step;
}

TrainingGraph graph_of(const Step& step) {
  OnnxReadOptions reading = step.network.options;
  if (step.training)
    read_for(reading, *step.training);
  ForeignReport foreign;
  const Graph graph =
      recognise(cli::read_network(step.network.path, reading), step.training.has_value(), foreign);
  return step.training ? make_training_graph(graph, *step.training)
                       : make_inference_graph(graph, step.precision.value_or(Precision{}));
}

Result schedule(const Step& step, const PyChip& chip, const ScheduleArguments& arguments,
                const ProgressCalls& progress, std::atomic<bool>& stop) {
  const GivenFiles given(arguments.files);
  const cli::Experiment experiment = experiment_of(step, chip, arguments);
  WarningScope* const outer = WarningScope::current();
  cli::Session session(true);
  const SessionWarnings kept(session, outer);
  session.context.jobs = arguments.jobs;
  session.context.verify = arguments.verify;
  session.context.stop.flag = &stop;
  session.interrupted = &stop;
  progress.listen_to(session, stop);
  const cli::ModelInputs inputs =
      session.stage("read files", [&] { return cli::read_inputs(experiment, chip.chip.get()); });
  auto model = std::make_shared<const cli::Model>(cli::make_model(experiment, inputs, session));
  return {experiment.name, std::move(model),
          merged({step.warnings, chip.warnings, session.warnings.warnings()})};
}

std::string json_of(const Result& result) {
  const GivenWarnings given(result.warnings);
  cli::CapturedOutput output;
  cli::write_json("-", result.model->json(result.name));
  output.json.pop_back(); // the newline
  return std::move(output.json);
}

std::string write_report(const Result& result, const std::string& folder) {
  const GivenWarnings given(result.warnings);
  const nlohmann::ordered_json json = result.model->json(result.name);
  if (result.model->training_graph)
    return cli::write_results(folder, json, result.model->training_graph->graph);
  return cli::write_result_and_report(folder, json);
}

std::string table_of(const Result& result) {
  return summary_table(result.model->json(result.name));
}

} // namespace monet::python

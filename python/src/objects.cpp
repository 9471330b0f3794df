#include "objects.hpp"

#include "options/network_options.hpp"

#include "monet/base/files.hpp"
#include "monet/base/yaml.hpp"
#include "monet/hardware/read_hardware.hpp"
#include "monet/training/training.hpp"
#include "monet/workload/foreign.hpp"
#include "monet/workload/onnx_writer.hpp"

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include <filesystem>

namespace monet::python {

namespace {

std::string stem(const std::string& path) {
  return std::filesystem::path(path).stem().string();
}

cli::Experiment experiment_of(const Step& step, const PyChip& chip,
                              const ScheduleArguments& arguments) {
  cli::RuleArguments rules;
  rules.mode = arguments.mode;
  rules.stacks = arguments.stacks;
  rules.halo = arguments.halo;
  rules.priority = arguments.priority;
  rules.stream_like = arguments.stream_like;
  cli::CostArguments cost;
  cost.objective = arguments.objective;
  cost.lpf_limit = arguments.lpf_limit;
  cli::Experiment experiment;
  experiment.name = fmt::format("{} on {}", stem(step.network.path), chip.name);
  experiment.network = step.network.path;
  experiment.network_options = step.network.options;
  experiment.hardware = chip.chip->origin;
  experiment.mapping = arguments.mapping;
  experiment.training = step.training;
  experiment.precision = step.precision;
  experiment.files = step.files;
  rules.apply(experiment);
  experiment.core_cost = cost.options();
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
  return {std::make_shared<const Chip>(read_chip(path)), stem(path)};
}

PyChip read_chip_texts(const std::string& name, const std::map<std::string, std::string>& texts) {
  const GivenFiles given(texts);
  const auto chip = std::make_shared<const Chip>(read_chip(name));
  return {chip, chip->name};
}

Step training_step(const Network& network, const std::string& text, const std::string& origin,
                   bool file) {
  ProblemList problems;
  Step step{network, read_training_options(parse_yaml(text, origin), problems), {}, {}};
  problems.throw_if_any();
  if (file)
    step.files.push_back(origin);
  return step;
}

Step inference_step(const Network& network, const std::string& precision) {
  Step step{network, {}, {}, {}};
  if (!precision.empty()) {
    ProblemList problems;
    step.precision = read_precision_options(parse_yaml(precision, "precision"), problems);
    problems.throw_if_any();
  }
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
  cli::Session session(true);
  session.context.jobs = arguments.jobs;
  session.context.verify = arguments.verify;
  session.context.stop.flag = &stop;
  session.interrupted = &stop;
  progress.listen_to(session, stop);
  const cli::ModelInputs inputs =
      session.stage("read files", [&] { return cli::read_inputs(experiment, chip.chip.get()); });
  return {experiment.name,
          std::make_shared<const cli::Model>(cli::make_model(experiment, inputs, session))};
}

std::string json_of(const Result& result) {
  return result.model->json(result.name)
      .dump(-1, ' ', true, nlohmann::ordered_json::error_handler_t::replace);
}

std::string write_report(const Result& result, const std::string& folder) {
  const nlohmann::ordered_json json = result.model->json(result.name);
  if (result.model->training_graph)
    return cli::write_results(folder, json, result.model->training_graph->graph);
  return cli::write_result_and_report(folder, json);
}

std::string table_of(const Result& result) {
  return summary_table(result.model->json(result.name));
}

} // namespace monet::python

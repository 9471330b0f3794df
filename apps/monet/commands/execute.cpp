// monet graph --execute: runs a step, or alternating steps, numerically and reports losses and
// norms. Calls the execute stage.
#include "commands/execute.hpp"

#include "base/shared/npy.hpp"
#include "base/shared/text.hpp"
#include "commands/step_numbers.hpp"
#include "options/command_line.hpp"
#include "options/memory_budget.hpp"
#include "pipeline.hpp"
#include "report/shared/text.hpp"

#include "monet/base/errors.hpp"
#include "monet/base/files.hpp"
#include "monet/execute/execute.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <cmath>
#include <filesystem>
#include <map>

namespace monet::cli {

namespace {

double norm_of(const std::vector<double>& numbers) {
  double sum = 0.0;
  for (const double x : numbers)
    sum += x * x;
  return std::sqrt(sum);
}

/// Number as JSON; infinities and NaN, which JSON lacks, are strings.
Json number(double value) {
  return std::isfinite(value) ? Json(value) : Json(fmt::format("{}", value));
}

ExecuteOptions options_of(const ExecuteArguments& arguments, const TrainingGraph& step) {
  ExecuteOptions options;
  options.arithmetic = *arithmetic_named(arguments.arithmetic);
  options.formats = step.arithmetic;
  options.jobs = arguments.jobs;
  options.seed = arguments.seed;
  options.keep_all = false;
  options.memory_limit_bytes =
      parse_budget(arguments.memory_limit, machine_memory_bytes(), "--memory-limit");
  return options;
}

Json parameters_json(const TrainingGraph& step, const Execution& execution) {
  Json rows = Json::array();
  for (const ParameterRecord& record : step.parameters) {
    const Tensor& weight = step.graph.tensor(record.weight);
    rows.push_back({{"name", valid_utf8(weight.name)},
                    {"shape", weight.shape},
                    {"gradient_norm", number(norm_of(execution.get(record.gradient)))},
                    {"updated_norm", number(norm_of(execution.get(record.updated)))}});
  }
  return rows;
}

Json outputs_json(const TrainingGraph& step, const Execution& execution) {
  Json rows = Json::array();
  for (const TensorId id : step.graph.outputs) {
    const Tensor& tensor = step.graph.tensor(id);
    if (tensor.alias_of || id == step.loss || !execution.has(id))
      continue;
    rows.push_back({{"name", valid_utf8(tensor.name)},
                    {"shape", tensor.shape},
                    {"norm", number(norm_of(execution.get(id)))}});
  }
  return rows;
}

double global_gradient_norm(const TrainingGraph& step, const Execution& execution) {
  std::vector<double> norms;
  for (const ParameterRecord& record : step.parameters)
    norms.push_back(norm_of(execution.get(record.gradient)));
  return norm_of(norms);
}

/// Saves the loss, outputs, gradients and updated tensors, one file each.
void save_results(const TrainingGraph& step, const Execution& execution,
                  const std::string& folder) {
  make_folder(folder);
  const auto save = [&](TensorId id, std::string name) {
    if (!execution.has(id))
      return;
    name = valid_utf8(name);
    for (char& c : name) {
      if (c == '/' || c == '\\' || c == ':' || static_cast<unsigned char>(c) < ' ')
        c = '_';
    }
    write_file_atomically(fmt::format("{}/{}.npy", folder, name),
                          npy_bytes(step.graph.tensor(id).shape, execution.get(id)));
  };
  for (const TensorId id : step.graph.outputs)
    save(id, step.graph.tensor(id).name);
  std::map<TensorId, int> owners; // biases of an LSTM, for example, share one gradient
  for (const ParameterRecord& record : step.parameters)
    ++owners[record.gradient];
  for (const ParameterRecord& record : step.parameters)
    save(record.gradient, owners[record.gradient] > 1
                              ? step.graph.tensor(record.weight).name + ".grad"
                              : step.graph.tensor(record.gradient).name);
}

} // namespace

void ExecuteArguments::add_to(Command& command) {
  command.add("--execute", &execute,
              "Execute the graph numerically, and print the loss and gradient norms");
  command.add("--arithmetic", &arithmetic,
              "Arithmetic of --execute; formats: each operator rounds to the types of its tensors",
              {.choices = arithmetic_names(), .needs = "--execute"});
  command.add("--jobs", &jobs,
              "Number of threads of --execute (0: all cores); results do not depend on it",
              {.range = Range{0, 1024}, .needs = "--execute"});
  command.add("--seed", &seed, "Seed of the numbers and masks that --execute generates",
              {.needs = "--execute"});
  command.add("--steps", &steps, "Number of training steps of --execute, all on the same batch",
              {.range = Range{1, 1000000}, .needs = "--execute"});
  command.add("--numbers", &numbers,
              "Values of a weight, input or state for --execute; may be repeated",
              {.type = "TENSOR=FILE.npy", .needs = "--execute"});
  command.add(
      "--memory-limit", &memory_limit,
      "Limit of this machine's memory for --execute: bytes, MiB, GiB, or a share of all memory",
      {.type = "BYTES", .needs = "--execute"});
  command.add("--save", &save, "Folder for outputs, gradients and updated tensors as .npy files",
              {.type = "DIR", .needs = "--execute", .output = Output::folder});
}

Json execute_step(const TrainingGraph& step, const std::string& network,
                  const ExecuteArguments& arguments, Session& session) {
  const ExecuteOptions options = options_of(arguments, step);
  Execution execution(step.graph, options);
  StepNumbers numbers(execution, step);
  numbers.from_npy(arguments.numbers);
  numbers.from_network(network);
  numbers.generate_rest(arguments.seed);
  Json steps = Json::array();
  for (int i = 0; i < arguments.steps; ++i) {
    session.progress.stage(fmt::format("execute step {} of {}", i + 1, arguments.steps));
    run_step(execution, step, i);
    Json row = Json::object();
    if (step.loss)
      row["loss"] = number(execution.get(*step.loss).at(0));
    if (step.training)
      row["gradient_norm"] = number(global_gradient_norm(step, execution));
    steps.push_back(std::move(row));
  }
  if (!arguments.save.empty())
    save_results(step, execution, arguments.save);
  return {{"arithmetic", arguments.arithmetic},
          {"seed", arguments.seed},
          {"numbers",
           {{"given", numbers.given},
            {"from_network", numbers.stored},
            {"generated", numbers.generated}}},
          {"steps", std::move(steps)},
          {"parameters", parameters_json(step, execution)},
          {"outputs", outputs_json(step, execution)}};
}

namespace {

/// Sets the numbers of each tensor in all steps that read it. A tensor that no step reads is an
/// error.
void give_numbers(AlternatingExecution& execution, const std::string& network,
                  const ExecuteArguments& arguments) {
  for (const std::string& pair : arguments.numbers) {
    const std::string name = StepNumbers::name_in(pair);
    bool read = false;
    for (std::size_t i = 0; i < execution.size(); ++i) {
      const auto id = execution.graph(i).graph.find_tensor(name);
      const bool here = id && !execution.graph(i).graph.tensor(*id).producer;
      if (here || (i + 1 == execution.size() && !read))
        StepNumbers(execution.of(i), execution.graph(i)).from_npy(pair);
      read = read || here;
    }
  }
  for (std::size_t i = 0; i < execution.size(); ++i) {
    StepNumbers numbers(execution.of(i), execution.graph(i));
    numbers.from_network(network);
    numbers.generate_rest(arguments.seed);
  }
  execution.begin();
}

} // namespace

Json execute_alternating(const std::vector<TrainingGraph>& graphs,
                         const std::vector<AlternateStep>& steps, const std::string& network,
                         const ExecuteArguments& arguments, Session& session) {
  const ExecuteOptions options = options_of(arguments, graphs.at(0));
  std::vector<const TrainingGraph*> each;
  for (const TrainingGraph& graph : graphs)
    each.push_back(&graph);
  AlternatingExecution execution(std::move(each), options);
  give_numbers(execution, network, arguments);
  Json iterations = Json::array();
  for (int i = 0; i < arguments.steps; ++i) {
    session.progress.stage(fmt::format("execute iteration {} of {}", i + 1, arguments.steps));
    Json row = Json::object();
    for (std::size_t s = 0; s < steps.size(); ++s) {
      for (std::int64_t turn = 0; turn < steps[s].repeat; ++turn)
        execution.run(s);
      if (graphs[s].loss)
        row[valid_utf8(steps[s].name)] = number(execution.of(s).get(*graphs[s].loss).at(0));
    }
    iterations.push_back(std::move(row));
  }
  Json results = Json::array();
  for (std::size_t s = 0; s < steps.size(); ++s) {
    if (!arguments.save.empty())
      save_results(graphs[s], execution.of(s),
                   (std::filesystem::path(arguments.save) / steps[s].name).string());
    results.push_back({{"name", valid_utf8(steps[s].name)},
                       {"parameters", parameters_json(graphs[s], execution.of(s))}});
  }
  return {{"arithmetic", arguments.arithmetic},
          {"seed", arguments.seed},
          {"iterations", std::move(iterations)},
          {"steps", std::move(results)}};
}

std::string alternating_table(const Json& execution) {
  std::vector<std::vector<std::string>> rows{{"iteration"}};
  for (const Json& step : execution.at("steps"))
    rows[0].push_back("loss of " + printable(step.at("name").get_ref<const std::string&>()));
  for (std::size_t i = 0; i < execution.at("iterations").size(); ++i) {
    rows.push_back({fmt::format("{}", i + 1)});
    for (const Json& step : execution.at("steps")) {
      const Json& losses = execution.at("iterations")[i];
      const auto loss = losses.find(step.at("name").get<std::string>());
      rows.back().push_back(loss == losses.end() ? ""
                            : loss->is_string()  ? loss->get<std::string>()
                                                 : fmt::format("{:.6g}", loss->get<double>()));
    }
  }
  return aligned_table(rows);
}

std::string execution_table(const Json& execution) {
  const auto text = [](const Json& value) {
    return value.is_string() ? value.get<std::string>()
                             : fmt::format("{:.6g}", value.get<double>());
  };
  const auto shape = [](const Json& value) {
    return fmt::format("[{}]", fmt::join(value.get<std::vector<std::int64_t>>(), ", "));
  };
  const Json& numbers = execution.at("numbers");
  std::string result = fmt::format(
      "executed in {}: {} tensors given, {} from the network file, {} generated (seed {})\n\n",
      execution.at("arithmetic").get<std::string>(), numbers.at("given").get<std::int64_t>(),
      numbers.at("from_network").get<std::int64_t>(), numbers.at("generated").get<std::int64_t>(),
      execution.at("seed").get<std::uint64_t>());
  std::vector<std::vector<std::string>> steps{{"step", "loss", "gradient norm"}};
  for (std::size_t i = 0; i < execution.at("steps").size(); ++i) {
    const Json& row = execution.at("steps")[i];
    steps.push_back({fmt::format("{}", i + 1), row.contains("loss") ? text(row["loss"]) : "",
                     row.contains("gradient_norm") ? text(row["gradient_norm"]) : ""});
  }
  if (!execution.at("parameters").empty())
    result += aligned_table(steps) + "\n";
  std::vector<std::vector<std::string>> parameters{
      {"parameter", "shape", "gradient norm", "norm after update"}};
  for (const Json& row : execution.at("parameters")) {
    parameters.push_back({printable(row.at("name").get_ref<const std::string&>()),
                          shape(row.at("shape")), text(row.at("gradient_norm")),
                          text(row.at("updated_norm"))});
  }
  if (parameters.size() > 1)
    result += aligned_table(parameters);
  std::vector<std::vector<std::string>> outputs{{"output", "shape", "norm"}};
  for (const Json& row : execution.at("outputs")) {
    outputs.push_back({printable(row.at("name").get_ref<const std::string&>()),
                       shape(row.at("shape")), text(row.at("norm"))});
  }
  if (outputs.size() > 1)
    result += aligned_table(outputs);
  return result;
}

} // namespace monet::cli

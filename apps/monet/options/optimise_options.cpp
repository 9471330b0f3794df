// Options, inputs and results shared by the searches of `monet optimise` (optimise_options.hpp).
#include "options/optimise_options.hpp"

#include "options/command_line.hpp"
#include "options/unused_options.hpp"
#include "report/shared/optimise_result.hpp"
#include "report/shared/written.hpp"
#include "workload/shared/views.hpp"

#include "monet/base/errors.hpp"

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include <algorithm>

namespace monet::cli {

void OptimiseArguments::add_to(Command& command) {
  step.add_to(command);
  command.add("--core-objective", &core_objective,
              "Objective of each layer's mapping on a core; auto: as --objective",
              {.choices = {"auto", "latency", "energy", "edp"}});
  std::vector<BoundOption> cost = bind(kCoreCostKeys, step.cost);
  std::erase_if(cost, [](const BoundOption& one) { return one.key == "objective"; });
  command.add(cost);
  for (const Option& option : command.options)
    of_step.push_back(&option);
  command.add("experiment", &experiment, "Experiment file (YAML); replaces the options of the step",
              {.type = "EXPERIMENT.yaml"});
  add_limits_to(command, true);
  command.add("--report", &report,
              "Folder for result.json, report.html, trace.json and training.onnx of the best plan",
              {.type = "DIR", .output = Output::folder});
  command.add("--verify", &verify, "Check the invariants of every stage's result");
}

void OptimiseArguments::add_limits_to(Command& command, bool seeded) {
  std::vector<BoundOption> limits = bind(kSearchLimits, *this);
  if (!seeded)
    std::erase_if(limits, [](const BoundOption& one) { return one.key == "seed"; });
  command.add(limits);
  command.add("--jobs", &jobs, "Number of threads (0: all cores); results do not depend on it",
              {.range = Range{0, 4096}});
  command.add("--json", &json, "Write the result as JSON; -: standard output",
              {.type = "FILE", .output = Output::file});
}

Experiment OptimiseArguments::read() const {
  if (!experiment.empty()) {
    for (const Option* option : of_step) {
      if (option->given)
        throw UsageError(option->name() + " must be set in the experiment file");
    }
    return read_experiment(experiment);
  }
  if (step.hardware.empty() || step.workload.empty())
    throw UsageError("an experiment file, or --hardware and --workload are required");
  return step.experiment();
}

TilingOptions SearchInputs::tiling_options() const {
  return cli::tiling_options(experiment, files, step, &graph);
}

ScheduleOptions SearchInputs::schedule_options(int jobs) const {
  return cli::schedule_options(experiment, jobs);
}

SearchInputs prepare(const OptimiseArguments& arguments, const std::string& objective,
                     Session& session) {
  limit_time(arguments, session);
  session.context.jobs = arguments.jobs;
  session.context.verify = arguments.verify;
  Experiment experiment = arguments.read();
  if (arguments.adapt)
    arguments.adapt(experiment);
  if (arguments.experiment.empty()) {
    const bool is_auto = arguments.core_objective == "auto";
    experiment.core_cost.objective =
        objective_named(is_auto ? objective : arguments.core_objective, kCoreObjectives)
            .value_or(Objective::latency);
  }
  return prepare(std::move(experiment), session);
}

SearchInputs prepare(Experiment experiment, Session& session) {
  SearchInputs inputs;
  inputs.experiment = std::move(experiment);
  inputs.files = read_and_check(inputs.experiment, session);
  const auto check = [](const TrainingGraph& graph) { verify(graph); };
  const auto& training = inputs.experiment.training;
  inputs.graph = session.stage(
      "graph",
      [&] {
        return training
                   ? make_step(inputs.files.network, *training, inputs.experiment.training_where)
                   : make_inference_graph(inputs.files.network,
                                          inference_precision(inputs.experiment));
      },
      check);
  inputs.step = session.stage(
      "fold views", [&] { return fold_views(inputs.graph); }, check);
  return inputs;
}

void limit_time(const OptimiseArguments& arguments, Session& session) {
  if (arguments.time_limit <= 0)
    return;
  const double left = std::max(0.0, arguments.time_limit - session.progress.seconds());
  session.context.stop.deadline =
      StopRequest::Clock::now() +
      std::chrono::duration_cast<StopRequest::Clock::duration>(std::chrono::duration<double>(left));
}

SearchControl search_control(const OptimiseArguments& arguments, Session& session) {
  limit_time(arguments, session);
  SearchControl control;
  control.seed = arguments.seed;
  control.jobs = arguments.jobs;
  control.stop = session.interrupted;
  control.stop_at_once = session.terminated;
  control.deadline = session.context.stop.deadline;
  session.context.stop = {}; // both now end the search instead of the command
  const auto deadline = control.deadline;
  control.progress = [&session, deadline](const SearchProgress& state) {
    SearchControl limit;
    limit.deadline = deadline;
    session.progress.search(state, limit.seconds_left());
  };
  return control;
}

nlohmann::ordered_json search_provenance(const SearchInputs& inputs,
                                         const OptimiseArguments& arguments) {
  Provenance provenance = provenance_of(inputs.experiment, inputs.files.chip);
  provenance.seed = arguments.seed;
  if (arguments.time_limit > 0)
    provenance.options["time_limit_seconds"] = fmt::format("{}", arguments.time_limit);
  return provenance_json(provenance);
}

void check_answer(const SearchInputs& inputs, const TrainingGraph& step, const StepOptions& options,
                  const StepFigures& claimed, const Certificate& found) {
  CoreCostCache costs;
  verify_figures(claimed, step, inputs.files.chip, options, {costs});
  internal_check(!(found.best < found.bound), "the best answer of a search beats its bound");
}

void write_search_report(const OptimiseArguments& arguments, const SearchInputs& inputs,
                         const nlohmann::ordered_json& search, const SearchSteps& steps) {
  if (arguments.report.empty())
    return;
  const Chip& chip = inputs.files.chip;
  nlohmann::ordered_json result = result_json(inputs.experiment.name, steps.best, nullptr, chip,
                                              provenance_of(inputs.experiment, chip));
  result["provenance"] = search.at("provenance");
  result["optimise"] = optimise_json(
      {{search}, steps.before, steps.best, search.at("interrupted").get<bool>()}, chip);
  const std::string report =
      write_results(arguments.report, result, steps.graph ? *steps.graph : inputs.graph.graph);
  print_message("", "report: " + report);
}

int finish_search(const OptimiseArguments& arguments, const nlohmann::ordered_json& result,
                  const std::string& table, const Certificate& found, Session& session) {
  session.progress.stage("write results");
  const std::string worse = worse_text(result.at("objective").get<std::string>(), found);
  write_output(arguments.json, written(ResultSchema::optimise, result), worse + table);
  const bool stopped = session.interrupted != nullptr && session.interrupted->load();
  if (found.interrupted || stopped) {
    print_message("", fmt::format("{}: this is the best so far, gap {}",
                                  stopped ? "interrupted" : "time limit reached", gap_text(found)));
  }
  return stopped ? kExitInterrupted : kExitOk;
}

} // namespace monet::cli

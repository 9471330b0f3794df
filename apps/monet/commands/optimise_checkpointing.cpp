// monet optimise checkpointing: searches for the stored activations to recompute. Calls the
// checkpointing search, schedules its plan and writes the result.
#include "base/shared/amounts.hpp"
#include "base/shared/text.hpp"
#include "commands/optimise.hpp"
#include "options/memory_budget.hpp"
#include "report/shared/optimise_result.hpp"

#include "monet/base/errors.hpp"
#include "monet/base/files.hpp"
#include "monet/schedule/schedule.hpp"
#include "monet/training_graph/training.hpp"
#include "monet/workload/onnx_writer.hpp"

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <memory>

namespace monet::cli {

namespace {

struct CheckpointingCommand {
  OptimiseArguments common;
  CheckpointingArguments own;
};

double seconds_now() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration<double>(now).count();
}

/// Adds --keep and --recompute to the experiment. A plan is an order of operators, so the scheduler
/// follows this order (`in_order`) unless --priority is given.
void adapt(const CheckpointingCommand& arguments, bool in_order, Experiment& experiment) {
  const CheckpointingArguments& own = arguments.own;
  if (in_order && experiment.priority == Priority::latency)
    experiment.priority = Priority::order;
  if (!experiment.training) {
    const std::string& file = arguments.common.experiment;
    throw InputError({file.empty() ? experiment.network : file},
                     "inference stores no activations to recompute",
                     file.empty() ? "add --training" : "add 'training:'");
  }
  StorageOptions& options = experiment.training->storage;
  options.keep.insert(options.keep.end(), own.keep.begin(), own.keep.end());
  options.recompute.insert(options.recompute.end(), own.recompute.begin(), own.recompute.end());
}

/// Tensors of the folded step that the patterns of `keep` match; a view stands for the tensor it
/// views.
std::vector<TensorId> pinned_tensors(const SearchInputs& inputs) {
  std::vector<TensorId> pinned;
  const Graph& views = inputs.graph.graph;
  for (const std::string& pattern : inputs.experiment.training->storage.keep) {
    for (std::size_t t = 0; t < views.tensors().size(); ++t) {
      if (!glob_match(pattern, views.tensors()[t].name))
        continue;
      TensorId at{t};
      auto folded = inputs.step.graph.find_tensor(views.tensor(at).name);
      while (!folded && views.tensor(at).producer) {
        at = *views.op(*views.tensor(at).producer).inputs.at(0);
        folded = inputs.step.graph.find_tensor(views.tensor(at).name);
      }
      if (folded)
        pinned.push_back(*folded);
    }
  }
  return pinned;
}

ModelledStep modelled(const TrainingGraph& step, const SearchInputs& inputs, StepMode mode,
                      CoreCostCache& costs, Session& session) {
  StepOptions options;
  if (inputs.files.mapping)
    options.tiling.mapping = &*inputs.files.mapping;
  options.tiling.halo = inputs.experiment.halo;
  Experiment experiment = inputs.experiment;
  experiment.mode = mode;
  options.schedule = schedule_options(experiment, session.context.jobs);
  options.tiling = choose_step(experiment, inputs.files.chip, step, options, costs, session).tiling;
  return model_step(step, inputs.files.chip, options, {costs, &session.context});
}

class Checkpointing {
public:
  Checkpointing(const CheckpointingCommand& arguments, const SearchInputs& inputs, Session& session)
      : arguments_(arguments), own_(arguments.own), inputs_(inputs), session_(session) {}

  int run() {
    prepare_space();
    const SearchControl control = search_control(arguments_.common, session_);
    search(control);
    if (own_.method == "genetic")
      search_genetic(control);
    choose();
    write_graph();
    return write(control);
  }

private:
  void prepare_space() {
    session_.progress.stage("schedule layer by layer");
    before_.push_back(
        modelled(inputs_.step, inputs_, StepMode::layer_by_layer, core_costs_, session_));
    const OperatorCosts costs = operator_costs(before_[0].timeline, inputs_.step);
    outcome_.objective = own_.objective;
    outcome_.method = own_.method;
    outcome_.memory = own_.memory == "stored" ? CheckpointMemory::stored : CheckpointMemory::peak;
    const auto& first = outcome_.energy() ? costs.energy : costs.cycles;
    const auto& other = outcome_.energy() ? costs.cycles : costs.energy;
    space_ = checkpoint_space(inputs_.step, first, pinned_tensors(inputs_));
    second_.assign(1, 0); // entry 0: the data
    second_.insert(second_.end(), other.begin(), other.end());
    outcome_.base = evaluate(space_, store_everything(space_.problem), second_);
    outcome_.min_possible = min_memory(space_, outcome_.memory);
  }

  /// Budgets in descending order.
  std::vector<std::int64_t> budgets() const {
    const std::int64_t whole = outcome_.base.memory(outcome_.memory);
    if (!own_.sweep)
      return {own_.budget.empty() ? whole : parse_budget(own_.budget, whole, "--budget")};
    std::int64_t least = std::min(whole, outcome_.min_possible);
    if (!own_.least.empty())
      least = std::min(whole, parse_budget(own_.least, whole, "--least"));
    std::vector<std::int64_t> list;
    for (int i = 0; i <= own_.steps; ++i) {
      const double share = static_cast<double>(i) / own_.steps;
      list.push_back(whole - static_cast<std::int64_t>(share * static_cast<double>(whole - least)));
    }
    return list;
  }

  void search(const SearchControl& control) {
    CheckpointOptions options;
    options.memory = outcome_.memory;
    if (own_.method == "heuristics")
      options.method = CheckpointMethod::heuristics;
    if (own_.method == "chain")
      options.method = CheckpointMethod::chain;
    if (own_.method == "genetic")
      options.method = CheckpointMethod::genetic;
    options.genetic = {own_.population, own_.generations};
    const bool to_the_least = own_.sweep && own_.least.empty() && own_.method == "automatic";
    outcome_.rows = session_.stage(
        "search",
        [&] { return checkpoint_rows(space_, second_, budgets(), options, to_the_least, control); },
        [&](const std::vector<CheckpointRow>& rows) {
          for (const CheckpointRow& row : rows)
            verify(space_, outcome_.memory, row);
        });
  }

  void search_genetic(const SearchControl& control) {
    double begin = seconds_now();
    outcome_.genetic = genetic_checkpoints(space_, second_, outcome_.memory,
                                           {own_.population, own_.generations}, control);
    outcome_.genetic_seconds = seconds_now() - begin;
    begin = seconds_now();
    outcome_.dominating = dominate(space_, second_, outcome_.genetic, outcome_.memory, control);
    outcome_.dominating_seconds = seconds_now() - begin;
    genetic_interrupted_ = control.interrupted();
  }

  /// Chooses the tightest budget that has a plan. Throws InfeasibleError if a single budget has no
  /// plan, unless the search was interrupted.
  void choose() {
    for (std::size_t i = 0; i < outcome_.rows.size(); ++i) {
      if (outcome_.rows[i].point)
        outcome_.chosen = i;
    }
    const CheckpointRow& last = outcome_.rows.back();
    if (own_.sweep || last.point || last.result.interrupted)
      return;
    const std::string what = own_.memory == "stored" ? "carry into the backward part" : "peak at";
    throw InfeasibleError(
        last.result.infeasible
            ? fmt::format("no plan can {} {} or less: {} are the least that are proven "
                          "to be needed",
                          what, both_bytes(last.budget),
                          both_bytes(std::max(outcome_.min_possible, last.budget + 1)))
            : fmt::format("no plan was found to {} {} or less; whether there is one is open", what,
                          both_bytes(last.budget)));
  }

  const RecomputePlan* plan() const {
    return outcome_.chosen ? &outcome_.rows[*outcome_.chosen].point->plan : nullptr;
  }

  /// Builds the step with the chosen plan: with views for export, and without views for all other
  /// uses.
  void write_graph() {
    if (!plan())
      return;
    const std::vector<OpId> runs = runs_of(*plan());
    after_ = with_recomputation(inputs_.step, runs);
    verify(*after_);
    if (!own_.output.empty() || !arguments_.common.report.empty())
      export_ = with_recomputation(inputs_.graph, inputs_.step, runs);
    if (!own_.output.empty())
      write_file_atomically(own_.output, write_onnx(export_->graph));
  }

  /// Schedules the chosen plan and compares the figures. Sets `found.interrupted` if the control
  /// stops before the fused schedules are complete.
  Json compare(const SearchControl& control, Certificate& found) {
    session_.progress.stage("schedule the plan");
    if (after_)
      scheduled_.push_back(
          modelled(*after_, inputs_, StepMode::layer_by_layer, core_costs_, session_));
    const StepMode mode = inputs_.experiment.mode;
    const bool is_fused = mode != StepMode::layer_by_layer;
    const bool is_whole =
        !is_fused || control.finishes([&] { schedule_in(mode, control.stop_request()); });
    found.interrupted = found.interrupted || !is_whole || (is_fused && control.interrupted());
    if (!is_whole) {
      warn({},
           fmt::format("no time was left for schedules in mode {}: figures are of layer by layer",
                       name_of(mode)));
    }
    Json rows = Json::array();
    for (std::size_t i = 0; i < before_.size(); ++i) {
      const std::string name = i == 0 ? "" : fmt::format(", {}", name_of(mode));
      rows.push_back(figures_json("everything kept" + name, before_[i].figures));
      if (after_)
        rows.push_back(figures_json("recomputed" + name, scheduled_[i].figures));
    }
    return rows;
  }

  void schedule_in(StepMode mode, const StopRequest& request) {
    const StopScope scope(request);
    ModelledStep before = modelled(inputs_.step, inputs_, mode, core_costs_, session_);
    if (after_)
      scheduled_.push_back(modelled(*after_, inputs_, mode, core_costs_, session_));
    before_.push_back(std::move(before));
  }

  int write(const SearchControl& control) {
    Certificate found = outcome_.certificate();
    found.interrupted = found.interrupted || genetic_interrupted_;
    const Json compared = compare(control, found);
    Json json = checkpoint_json({"checkpointing", inputs_.experiment.name, own_.objective, found,
                                 session_.progress.seconds()},
                                outcome_, space_, inputs_.step);
    json["compared"] = compared;
    json["memory"] = Json::array({live_memory_json("before", inputs_.step)});
    if (after_)
      json["memory"].push_back(live_memory_json("after", *after_));
    json["seconds"] = session_.progress.seconds();
    json["provenance"] = search_provenance(inputs_, arguments_.common);
    if (after_)
      write_search_report(arguments_.common, inputs_, json,
                          {result_of(inputs_.step, before_.back()),
                           result_of(*after_, scheduled_.back()),
                           export_ ? &export_->graph : nullptr});
    return finish_search(arguments_.common, json, checkpoint_table(outcome_, compared), found,
                         session_);
  }

  const CheckpointingCommand& arguments_;
  const CheckpointingArguments& own_;
  const SearchInputs& inputs_;
  Session& session_;
  CoreCostCache core_costs_;
  std::vector<ModelledStep> before_, scheduled_; ///< layer by layer, then fused if requested
  CheckpointSpace space_;
  std::vector<std::int64_t> second_; ///< the other cost, per operator of the space
  CheckpointOutcome outcome_;
  bool genetic_interrupted_ = false; ///< a limit ended the genetic search
  std::optional<TrainingGraph> after_, export_;
};

void add_checkpointing_options(Command& command, CheckpointingArguments& own) {
  command.add(bind(kCheckpointingOptions, own));
  command.add("-o,--output", &own.output, "Write the step with the plan as ONNX",
              {.type = "OUT.onnx", .output = Output::file});
}

} // namespace

void add_optimise_checkpointing(Command& optimise) {
  auto arguments = std::make_shared<CheckpointingCommand>();
  Command& command = optimise.add_command(
      "checkpointing",
      "Search the activations to keep and those to recompute in the backward pass");
  arguments->common.add_to(command);
  add_checkpointing_options(command, arguments->own);
  command.footer =
      "Example: monet optimise checkpointing --hardware data/hardware/tpu_like_quad_core.yaml "
      "--workload data/workload/resnet18_cifar.onnx --batch 1 --training data/training/adam.yaml "
      "--memory stored --budget 50%";
  command.action = [arguments, &command](Session& session) -> int {
    if (!arguments->own.log.empty() && !arguments->common.report.empty())
      throw UsageError("--report requires a step: an operator log has no schedule");
    if (!arguments->own.log.empty())
      return optimise_log(arguments->common, arguments->own, session);
    if (arguments->own.sweep && !arguments->own.budget.empty())
      throw UsageError("--budget is one budget, --sweep many");
    const CheckpointingArguments& own = arguments->own;
    const std::array<std::string_view, 4> of_steps{"automatic", "heuristics", "chain", "genetic"};
    if (std::ranges::find(of_steps, own.method) == of_steps.end())
      throw UsageError("--method " + own.method + " is for --log");
    const bool in_order = !command.given("--priority");
    arguments->common.adapt = [arguments = arguments.get(), in_order](Experiment& experiment) {
      adapt(*arguments, in_order, experiment);
    };
    const SearchInputs inputs = prepare(arguments->common, own.objective, session);
    return Checkpointing(*arguments, inputs, session).run();
  };
}

} // namespace monet::cli

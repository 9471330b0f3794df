// monet run with `optimise:`: runs the searches of an experiment in sequence, each on the step that
// the previous search produced.
#include "base/shared/amounts.hpp"
#include "commands/optimise.hpp"
#include "options/memory_budget.hpp"
#include "report/shared/optimise_result.hpp"
#include "report/shared/text.hpp"

#include "monet/base/errors.hpp"
#include "monet/optimise/allocation.hpp"
#include "monet/optimise/checkpoint_search.hpp"
#include "monet/optimise/fusion.hpp"
#include "monet/training_graph/training.hpp"

#include <fmt/core.h>
#include <nlohmann/json.hpp>

namespace monet::cli {

namespace {

class OptimisedRun {
public:
  OptimisedRun(const Experiment& experiment, Session& session)
      : request_(*experiment.optimise), session_(session) {
    ModelInputs files = read_and_check(experiment, session);
    base_ = make_model(experiment, files, session);
    TrainingGraph graph =
        base_.training_graph ? *base_.training_graph
                             : make_inference_graph(files.network, inference_precision(experiment));
    inputs_ = {experiment, std::move(files), std::move(graph), base_.step.graph};
    step_ = inputs_.step;
    OptimiseArguments limits;
    static_cast<SearchLimits&>(limits) = request_;
    limits.jobs = session.context.jobs;
    control_ = search_control(limits, session);
    tiling_ = inputs_.tiling_options(); // points into inputs_, which stays in place
    take(base_.step.tiling);
  }

  int run(const std::string& folder) {
    // A search without time for a first plan leaves the step unchanged.
    const auto attempt = [&](const auto& search) {
      try {
        search();
      } catch (const Stopped&) {
        interrupted_ = true;
      }
    };
    if (request_.checkpointing)
      attempt([&] { checkpoint(*request_.checkpointing); });
    if (request_.fusion)
      attempt([&] { fuse(*request_.fusion); });
    if (request_.allocation)
      attempt([&] { allocate(*request_.allocation); });
    return write(folder);
  }

private:
  const Chip& chip() const { return inputs_.files.chip; }

  /// Adopts the stacks and slices that have been chosen.
  void take(const TilingOptions& chosen) {
    tiling_.mode = chosen.mode;
    tiling_.stacks = chosen.stacks;
    tiling_.slices = chosen.slices;
    tiling_.idle = chosen.idle;
  }

  void add(const std::string& kind, const std::string& objective, const Certificate& found,
           const Json& more) {
    Json json =
        search_json({kind, inputs_.experiment.name, objective, found, session_.progress.seconds()});
    json.update(more);
    interrupted_ = interrupted_ || found.interrupted;
    searches_.push_back(std::move(json));
  }

  /// Searches for checkpoints with the costs of the step as scheduled without searches.
  void checkpoint(const CheckpointingArguments& request) {
    const OperatorCosts costs = operator_costs(base_.step.modelled.timeline, inputs_.step);
    const bool energy = request.objective == "energy";
    const CheckpointSpace space =
        checkpoint_space(inputs_.step, energy ? costs.energy : costs.cycles);
    CheckpointOptions options;
    options.memory = request.memory == "stored" ? CheckpointMemory::stored : CheckpointMemory::peak;
    const CheckpointPoint everything = evaluate(space, store_everything(space.problem));
    const std::int64_t budget =
        parse_budget(request.budget, everything.memory(options.memory), "budget");
    const std::vector<std::int64_t> budgets{budget};
    const RecomputeResult found = session_.stage(
        "checkpointing",
        [&] { return std::move(checkpoint_front(space, budgets, options, control_).front()); },
        [&](const RecomputeResult& result) { verify(space.problem, result); });
    Certificate certificate{std::numeric_limits<double>::infinity(), found.bound,
                            found.interrupted};
    Json more{{"budget_bytes", budget}};
    if (found.plan) {
      const CheckpointPoint point = evaluate(space, *found.plan);
      certificate.best = static_cast<double>(point.cost);
      more["peak_bytes"] = point.peak_bytes;
      more["stored_bytes"] = point.stored_bytes;
      more["overhead"] = static_cast<double>(point.cost) / static_cast<double>(everything.cost) - 1;
      const std::vector<OpId> runs = runs_of(*found.plan);
      TrainingGraph step = with_recomputation(inputs_.step, runs);
      TrainingGraph with_views = with_recomputation(inputs_.graph, inputs_.step, runs);
      TilingOptions tiling = tiling_options(inputs_.experiment, inputs_.files, step, &with_views);
      StepOptions run{tiling, inputs_.schedule_options(session_.context.jobs), "recomputed"};
      control_.begin([&] {
        run.tiling = choose_step(inputs_.experiment, chip(), step, run, costs_, session_).tiling;
      });
      step_ = std::move(step);
      export_ = std::move(with_views);
      tiling_ = std::move(tiling);
      take(run.tiling);
    } else if (!found.interrupted) {
      throw InfeasibleError(
          fmt::format("checkpointing: {} within {}{}",
                      found.infeasible ? "no plan is" : "no plan was found", both_bytes(budget),
                      found.infeasible ? fmt::format("; at least {} are needed",
                                                     both_bytes(min_memory(space, options.memory)))
                                       : ""));
    }
    add("checkpointing", request.objective, certificate, more);
  }

  void fuse(FusionOptions options) {
    options.recomputed_halos = tiling_.halo == Halo::recomputed;
    FusionProblem problem{step_, chip(), costs_, tiling_, inputs_.schedule_options(1), 0, {}};
    problem.starts.emplace(); // replaces first_ways(): the baseline is known
    if (tiling_.mode == TilingMode::fused)
      problem.starts->push_back(fusion_of(step_, chip(), tiling_));
    const FusionResult found = session_.stage(
        "fusion", [&] { return optimise_fusion(problem, options, control_); },
        [&](const FusionResult& result) {
          check(problem.tiling.with(result.plan), result.figures, result.certificate);
        });
    tiling_ = tiling_.with(found.plan);
    Json trace = Json::array();
    const std::size_t merge = found.trace.size() / 200 + 1;
    for (std::size_t i = 0; i < found.trace.size(); i += merge)
      trace.push_back({{"evaluations", i + 1}, {"best", number_json(found.trace[i])}});
    add("fusion", std::string(name_of(options.objective)), found.certificate,
        {{"evaluations", found.evaluations}, {"trace", std::move(trace)}});
  }

  void allocate(const AllocationSearchOptions& options) {
    AllocationEvaluator evaluator(step_, chip(), tiling_, inputs_.schedule_options(1));
    const AllocationResult found = session_.stage(
        "allocation", [&] { return search_allocation(evaluator, options, control_); },
        [&](const AllocationResult& result) {
          TilingOptions tiling = evaluator.tiling();
          const CoreAllocation allocation = evaluator.allocation(result.best.plan);
          tiling.allocation = &allocation;
          check(tiling, result.best.figures, result.certificate);
        });
    allocation_ = evaluator.allocation(found.best.plan);
    tiling_ = evaluator.tiling();
    tiling_.allocation = &allocation_;
    add("allocation", std::string(options.objective_name()), found.certificate,
        {{"evaluations", found.evaluations}});
  }

  void check(const TilingOptions& tiling, const StepFigures& claimed,
             const Certificate& found) const {
    check_answer(inputs_, step_, {tiling, inputs_.schedule_options(1), {}}, claimed, found);
  }

  int write(const std::string& folder) {
    session_.progress.stage("write results");
    const ModelledStep best =
        model_step(step_, chip(), {tiling_, inputs_.schedule_options(session_.context.jobs), {}},
                   {costs_, &session_.context});
    const StepResult alone = base_.inference ? base_.inference->result() : StepResult{};
    Provenance provenance = base_.provenance;
    provenance.seed = request_.seed;
    Json json = result_json(inputs_.experiment.name, result_of(step_, best),
                            base_.inference ? &alone : nullptr, chip(), provenance);
    json["optimise"] = optimise_json(
        {searches_, base_.step.result(), result_of(step_, best), interrupted_}, chip());
    const Graph& graph = export_ ? export_->graph : inputs_.graph.graph;
    const std::string report = write_results(folder, json, graph);
    print_result(fmt::format("{}{}\n{}\nreport: {}\n", worse_text(json.at("optimise")),
                             summary_table(json), outcome(json), printable(report)));
    const bool stopped = session_.interrupted != nullptr && session_.interrupted->load();
    if (interrupted_)
      print_message("", stopped ? "interrupted: this is the best so far"
                                : "time limit reached: this is the best so far");
    return stopped ? kExitInterrupted : kExitOk;
  }

  std::string outcome(const Json& json) const {
    std::string text = compared_table(json.at("optimise").at("compared"));
    for (const Json& search : searches_) {
      const Json& gap = search.at("gap");
      text +=
          fmt::format("{} ({}): gap {}\n", search.at("kind").get<std::string>(),
                      search.at("objective").get<std::string>(),
                      gap.is_null() ? "unknown" : fmt::format("{:.2f} %", 100 * gap.get<double>()));
    }
    return text;
  }

  const OptimiseRequest& request_;
  Session& session_;
  Model base_;
  SearchInputs inputs_;
  TrainingGraph step_;
  std::optional<TrainingGraph> export_; ///< with views and recomputation
  TilingOptions tiling_;
  CoreAllocation allocation_;
  CoreCostCache costs_;
  SearchControl control_;
  std::vector<Json> searches_;
  bool interrupted_ = false;
};

} // namespace

int run_optimised(const Experiment& experiment, const std::string& folder, Session& session) {
  return OptimisedRun(experiment, session).run(folder);
}

} // namespace monet::cli
